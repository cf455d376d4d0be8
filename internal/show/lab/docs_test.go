package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"example.com/shop/internal/show/lab"
)

// root is that of the repository.
const root = "../../.."

func TestLinksOfLabsExist(t *testing.T) {
	t.Parallel()
	for _, l := range lab.All() {
		code, test := false, false
		for _, link := range l.Links {
			if info, err := os.Stat(filepath.Join(root, link.Path)); err != nil || info.IsDir() {
				t.Errorf("%s: %q: no file %s: %v", l.Name, link.Text, link.Path, err)
			}
			isTest := strings.HasSuffix(link.Path, "_test.go")
			code, test = code || !isTest, test || isTest
		}
		if !code || !test {
			t.Errorf("%s links to code %t, to a test %t; want both", l.Name, code, test)
		}
	}
}

func TestLabsAreNumberedAndComplete(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	if n := len(lab.All()); n != 18 {
		t.Errorf("%d labs, want 18", n)
	}
	for i, l := range lab.All() {
		if l.Number != i+1 || names[l.Name] {
			t.Errorf("lab %d, %s: want number %d, and a name of its own", l.Number, l.Name, i+1)
		}
		names[l.Name] = true
		for what, text := range map[string]string{
			"title": l.Title, "question": l.Question, "expectation": l.Expect, "cause": l.Why, "cure": l.Cure,
			"first exercise": l.Exercises[0], "second exercise": l.Exercises[1], "third exercise": l.Exercises[2],
		} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", l.Name, what)
			}
		}
		words := l.Chinese()
		for what, text := range map[string]string{
			"title": words.Title, "question": words.Question, "expectation": words.Expect, "cause": words.Why, "cure": words.Cure,
		} {
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
	for _, l := range lab.All() {
		page := read(t, l.File()+".md")
		parts := append([]string{
			l.Title, l.Question, l.Expect, l.Why, l.Cure, "\ngo run ./cmd/shop lab run " + l.Name + "\n", "\n| measured |", "Verdict: **shown**",
		}, l.Exercises[:]...)
		for _, link := range l.Links {
			parts = append(parts, "["+link.Text+"](../../"+link.Path+")")
		}
		for _, want := range parts {
			if !strings.Contains(page, want) {
				t.Errorf("%s.md lacks %q: run make labs", l.File(), want)
			}
		}
		if picture := l.File() + ".svg"; strings.Contains(page, picture) && !strings.HasPrefix(read(t, picture), "<svg ") {
			t.Errorf("%s is no picture", picture)
		}
	}
	written := t.TempDir()
	if err := lab.WriteIndex(written); err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(filepath.Join(written, "index.md")); err != nil || read(t, "index.md") != string(want) {
		t.Errorf("index.md is stale: run make labs: %v", err)
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
