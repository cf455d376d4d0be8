package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"example.com/shop/internal/lab"
)

// root is that of the repository.
const root = "../.."

func TestLinksOfLabsExist(t *testing.T) {
	t.Parallel()
	for _, l := range lab.All() {
		if len(l.Links) == 0 {
			t.Errorf("%s has no links", l.Name)
		}
		test := false
		for _, link := range l.Links {
			if info, err := os.Stat(filepath.Join(root, link.Path)); err != nil || info.IsDir() {
				t.Errorf("%s: %q: no file %s: %v", l.Name, link.Text, link.Path, err)
			}
			test = test || strings.HasSuffix(link.Path, "_test.go")
		}
		if !test {
			t.Errorf("%s has no link to a test", l.Name)
		}
	}
}

func TestLabsAreNumberedAndComplete(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	last := 0
	for _, l := range lab.All() {
		if l.Number <= last || names[l.Name] {
			t.Errorf("lab %d, %s: want numbers that rise, and a name of its own", l.Number, l.Name)
		}
		last, names[l.Name] = l.Number, true
		for what, text := range map[string]string{
			"title": l.Title, "question": l.Question, "expectation": l.Expect, "cause": l.Why, "cure": l.Cure,
			"first exercise": l.Exercises[0], "second exercise": l.Exercises[1], "third exercise": l.Exercises[2],
		} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", l.Name, what)
			}
		}
		words := l.Chinese()
		for what, text := range map[string]string{"title": words.Title, "question": words.Question, "expectation": words.Expect} {
			if !strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Errorf("%s has no %s in Chinese: %q", l.Name, what, text)
			}
		}
		if found, err := lab.Find(l.Name); err != nil || found.Number != l.Number {
			t.Errorf("Find(%q) = lab %d, %v", l.Name, found.Number, err)
		}
	}
}

// make labs writes the pages.
func TestEachLabHasItsPage(t *testing.T) {
	t.Parallel()
	index := read(t, "index.md")
	for _, l := range lab.All() {
		page := read(t, l.File()+".md")
		for _, want := range []string{l.Title, l.Question, l.Expect, l.Why, l.Cure, l.Exercises[0], "lab run " + l.Name, "Verdict: **shown**"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s.md lacks %q: run make labs", l.File(), want)
			}
		}
		if picture := l.File() + ".svg"; strings.Contains(page, picture) && !strings.HasPrefix(read(t, picture), "<svg ") {
			t.Errorf("%s is no picture", picture)
		}
		if !strings.Contains(index, l.File()+".md") || !strings.Contains(index, l.Question) {
			t.Errorf("index.md lacks %s: run make labs", l.Name)
		}
	}
}

// read returns a file of the pages of labs.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", "labs", name))
	if err != nil {
		t.Fatalf("%v: run make labs", err)
	}
	return string(b)
}
