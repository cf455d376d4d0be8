package lab_test

import (
	"flag"
	"net/url"
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
	if n := len(lab.All()); n != 21 {
		t.Errorf("%d labs, want 21", n)
	}
	for i, l := range lab.All() {
		if l.Number != i+1 || names[l.Name] {
			t.Errorf("lab %d, %s: want number %d, and a name of its own", l.Number, l.Name, i+1)
		}
		names[l.Name] = true
		for what, text := range map[string]string{
			"title": l.Title, "question": l.Question, "expectation": l.Expect, "cause": l.Why, "cure": l.Cure,
			"first exercise": l.Exercises[0].Text, "second exercise": l.Exercises[1].Text, "third exercise": l.Exercises[2].Text,
		} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", l.Name, what)
			}
		}
		words := l.Chinese()
		for what, text := range map[string]string{
			"title": words.Title, "question": words.Question, "expectation": words.Expect, "cause": words.Why, "cure": words.Cure,
			"first exercise": words.Exercises[0].Text, "second exercise": words.Exercises[1].Text, "third exercise": words.Exercises[2].Text,
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

var update = flag.Bool("update", false, "write the texts of today into the pages of the labs, and docs/bibliography.md")

// make labs writes the pages from runs, and make gen the texts around these runs.
func TestEachLabHasItsPage(t *testing.T) {
	t.Parallel()
	for _, l := range lab.All() {
		page := read(t, l.File()+".md")
		fresh, err := l.Refresh(page)
		if err != nil {
			t.Fatalf("%v: run make labs", err)
		}
		for _, want := range []string{"\n| measured |", "Verdict: **shown**"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s.md lacks %q: run make labs", l.File(), want)
			}
		}
		for name, text := range fresh {
			same(t, "labs/"+name, text)
		}
		same(t, "labs/"+l.File()+".zh.svg", lab.ChineseSVG(read(t, l.File()+".svg")))
	}
	for name, text := range lab.Index() {
		same(t, "labs/"+name, text)
	}
	same(t, "bibliography.md", lab.BibliographyPage())
}

// same compares a page below docs with what it is to be, or writes it.
func same(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, "docs", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("docs/%s is stale: run make gen: %v", name, err)
	}
}

// Each lab names what to read, the same works in both languages. The bibliography has these works and no others, each with an
// address that is well formed.
func TestReadingsAreInTheBibliography(t *testing.T) {
	t.Parallel()
	cited := make(map[string]bool)
	for _, l := range lab.All() {
		chinese := l.Chinese().Read
		if len(l.Read) == 0 || len(l.Read) != len(chinese) {
			t.Errorf("%s: %d works to read in English, and %d in Chinese; want the same, and some", l.Name, len(l.Read), len(chinese))
			continue
		}
		for i, r := range l.Read {
			cited[r.Key] = true
			if r.Key != chinese[i].Key || len(r.Claim) < 40 || !strings.ContainsFunc(chinese[i].Claim, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Errorf("%s: %s: %q, and in Chinese %s: %q", l.Name, r.Key, r.Claim, chinese[i].Key, chinese[i].Claim)
			}
		}
	}
	all := lab.Bibliography()
	if rows := strings.Count(readFile(t, "texts/bibliography.md"), "\n| ") - 1; rows != len(all) {
		t.Errorf("%d of %d rows of the bibliography have the form of an entry", len(all), rows)
	}
	for i, w := range all {
		address, err := url.Parse(w.Address)
		if err != nil || address.Scheme != "https" && address.Scheme != "http" || !strings.Contains(address.Host, ".") || address.Path == "" || strings.ContainsAny(w.Address, " ()") {
			t.Errorf("%s: address %q, %v", w.Key, w.Address, err)
		}
		if !cited[w.Key] {
			t.Errorf("no lab cites %s", w.Key)
		}
		if i > 0 && all[i-1].Key >= w.Key {
			t.Errorf("%s follows %s", w.Key, all[i-1].Key)
		}
	}
}

// Each exercise says how hard it is, how long it takes, and where one begins. Its solution is folded, in both languages.
func TestEachExerciseHasItsSolution(t *testing.T) {
	t.Parallel()
	levels := map[string]string{"easy": "易", "medium": "中", "hard": "难"}
	for _, l := range lab.All() {
		chinese := l.Chinese().Exercises
		for _, name := range []string{l.File() + ".md", l.File() + ".zh.md"} {
			page := read(t, "solutions/"+name)
			parts := strings.Split(page, "\n## ")[1:]
			if len(parts) != len(l.Exercises) {
				t.Fatalf("solutions/%s has %d solutions, want %d", name, len(parts), len(l.Exercises))
			}
			for i, part := range parts {
				e := l.Exercises[i]
				if chinese[i].Level != levels[e.Level] || chinese[i].Minutes != e.Minutes || e.Minutes < 5 || e.Begin == "" {
					t.Errorf("%s, exercise %d: %+v, and in Chinese %+v", l.Name, i+1, e, chinese[i])
				}
				if file := filepath.Join(root, e.Begin); strings.Contains(e.Begin, "/") && !strings.Contains(e.Begin, " ") {
					if _, err := os.Stat(file); err != nil {
						t.Errorf("%s, exercise %d begins with %v", l.Name, i+1, err)
					}
				}
				if text := map[bool]string{false: e.Text, true: chinese[i].Text}[strings.HasSuffix(name, ".zh.md")]; !strings.Contains(part, text) {
					t.Errorf("solutions/%s, %d: not the solution of %q", name, i+1, text)
				}
				_, solution, folded := strings.Cut(part, "</summary>")
				if !folded || !strings.Contains(part, "<details>") || len(solution) < 100 {
					t.Errorf("solutions/%s: %d is not a folded solution: %q", name, i+1, part)
				}
			}
		}
	}
}

// read returns a file of the pages of labs.
func read(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, filepath.Join(root, "docs", "labs", name))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
