package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"testing"
)

// maxPathLines is how many lines the files on the path of an order may have.
const maxPathLines = 5000

// docs/architecture.md lists the hops of an order. Each function is in the file of its row, and calls the function that the row
// names. That is the function of the next row, or the field or parameter through which it is called.
func TestHops(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| \\[[^]]+\\]\\(\\.\\./internal/([^)]+)\\) \\| `(\\w+)` \\| (.*?) \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 20 || len(rows) > 33 {
		t.Errorf("%d hops, want about 25", len(rows))
	}
	files := make(map[string]int)
	for i, row := range rows {
		for _, link := range regexp.MustCompile(`\.\./internal/([^)]+\.go)`).FindAllStringSubmatch(row[0], -1) {
			if files[link[1]], err = countLines("../internal/" + link[1]); err != nil {
				t.Error(err)
			}
		}
		body := functionOf(t, "../internal/"+row[1], row[2])
		names := regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1)
		if body == nil || len(names) == 0 {
			continue
		}
		if !calls(body, names[0][1]) {
			t.Errorf("%s: %s does not call %s", row[1], row[2], names[0][1])
		}
		if next := names[len(names)-1][1]; i+1 == len(rows) || rows[i+1][2] != next {
			t.Errorf("%s: %s calls %s, which is not the next row", row[1], row[2], next)
		}
	}
	lines := 0
	for _, n := range files {
		lines += n
	}
	if lines > maxPathLines {
		t.Errorf("the files on the path have %d lines, and may have %d", lines, maxPathLines)
	}
	t.Logf("%d hops in %d files of %d lines", len(rows), len(files), lines)
}

func countLines(file string) (int, error) {
	text, err := os.ReadFile(file)
	return bytes.Count(text, []byte("\n")), err
}

// functionOf returns the body of the function or method of that name in file.
func functionOf(t *testing.T, file, name string) *ast.BlockStmt {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			return f.Body
		}
	}
	t.Errorf("%s has no function %s", file, name)
	return nil
}

// calls reports whether body calls name, or passes it on to be called.
func calls(body *ast.BlockStmt, name string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}
