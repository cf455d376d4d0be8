package lab

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	verbForm     = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)
	runLine      = regexp.MustCompile(`(?m)^(?: *[\d.]+ ms|(?:ok|NO)  (?:effect|cure)) +(.*)$|^\| ([^|]+) \| ([^|]+) \|$`)
	pictureText  = regexp.MustCompile(`<(?:text|title)[^>]*>([^<]*)</(?:text|title)>`)
	markMoment   = regexp.MustCompile(`^[a-z]  \d+ ms: `)
	englishWords = regexp.MustCompile(`[A-Za-z_]*[a-z]{2}[A-Za-z_]*|: `)
	// sameInBoth are products, strategies, settings, statements, code and the targets of links.
	sameInBoth = regexp.MustCompile("`[^`]*`|" + `\]\([^)]*\)|Redis|Redlock|MariaDB|Debian|SQLite|Galera|DELETE|redislock|redis\b|naive|local|conditional|optimistic|lua\b|context|wsrep_sync_wait|read_only|` +
		`--small|make servers|Error \d+|\bms\b|(?:INSERT INTO|UPDATE) \w+|SET sold = sold \+ 1|SET sold = 1|WHERE name = '[^']*'|entries 表`)
)

// englishOf are the words and signs that a reader of Chinese gets in English.
func englishOf(text string) []string {
	return englishWords.FindAllString(sameInBoth.ReplaceAllString(inChinese(text), ""), -1)
}

// Each step and each finding that the code of a lab can report is there in Chinese, and so is each text of a page.
func TestEachStepIsThereInChinese(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	reports := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			if !slices.Contains([]string{"Step", "step", "Effect", "Cure", "mark", "say", "para"}, name) {
				return true
			}
			for _, a := range call.Args {
				literal, ok := a.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				format, err := strconv.Unquote(literal.Value)
				if words := englishOf(verbForm.ReplaceAllString(format, "7")); err != nil || len(words) > 0 {
					t.Errorf("%s: %q has %q in Chinese: texts/runs.zh.txt lacks a line", file, format, words)
				}
				reports++
			}
			return true
		})
	}
	if reports < 150 {
		t.Errorf("the labs have %d steps and findings", reports)
	}
}

// Steps, findings and figures on the pages of the labs are there in Chinese, and so is each text of the pictures.
func TestEachTextOfAPictureIsThereInChinese(t *testing.T) {
	t.Parallel()
	for _, l := range All() {
		var texts []string
		for _, m := range runLine.FindAllStringSubmatch(file(t, l.File()+".md"), -1) {
			texts = append(texts, m[1:]...)
		}
		texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
		steps := len(texts)
		for _, m := range pictureText.FindAllStringSubmatch(file(t, l.File()+".svg"), -1) {
			texts = append(texts, markMoment.ReplaceAllString(html.UnescapeString(m[1]), ""))
		}
		if steps < 4 || len(texts)-steps < 8 {
			t.Errorf("%s has %d steps, findings and figures, and %d texts in its picture", l.Name, steps, len(texts)-steps)
		}
		for _, text := range texts {
			if words := englishOf(text); len(words) > 0 {
				t.Errorf("%s: %q has %q in Chinese: %q", l.Name, text, words, inChinese(text))
			}
		}
	}
}

// Each line in Chinese has what differs from run to run, once.
func TestChineseLinesAreComplete(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(textOf("runs.zh.txt"), "\n- "); lines != len(phrases()) {
		t.Errorf("%d of %d lines of runs.zh.txt have the form of a translation", len(phrases()), lines)
	}
	seen := make(map[string]bool)
	for _, p := range phrases() {
		want := holeForm.FindAllString(p.english, -1)
		got := slices.Sorted(slices.Values(holeForm.FindAllString(p.chinese, -1)))
		for i, hole := range want {
			if hole != "{"+strconv.Itoa(i+1)+"}" {
				t.Errorf("%q: hole %d is %s", p.english, i+1, hole)
			}
		}
		if !slices.Equal(got, want) || seen[p.english] {
			t.Errorf("%q: holes %q in Chinese, twice %t", p.english, got, seen[p.english])
		}
		seen[p.english] = true
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "labs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
