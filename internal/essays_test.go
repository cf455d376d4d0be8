package internal_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The longest package comment, and its longest first sentence, in words. A reader takes five minutes for the one, and sees the other
// alone in docs/packages.md.
const (
	longestEssay = 1000
	longestFirst = 35
)

// TestPackageCommentsAreShort counts the words of package comments.
func TestPackageCommentsAreShort(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if n := len(strings.Fields(p.Doc)); n == 0 || n > longestFirst {
			t.Errorf("%s: the first sentence of its comment has %d words, not 1 to %d: %q", p.ImportPath, n, longestFirst, p.Doc)
		}
		if n := len(strings.Fields(essay(t, filepath.Join("..", short(p.ImportPath))))); n > longestEssay {
			t.Errorf("%s: its comment has %d words, more than %d: move details to the comments of types", p.ImportPath, n, longestEssay)
		}
	}
}

// essay returns the package comment of the package in dir.
func essay(t *testing.T, dir string) (text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		text += file.Doc.Text()
	}
	return text
}
