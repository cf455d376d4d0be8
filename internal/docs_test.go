package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxPageWords is how many words a page may have: ten minutes of reading, and a quarter.
const maxPageWords = 2500

// Every link leads to a file of the repository, and every anchor to a heading of its page.
func TestPageLinksResolve(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	links := 0
	for _, p := range pages {
		for _, l := range p.links {
			if l.file == "" {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(l.file))); err != nil {
				t.Errorf("%s: [%s](%s) leads nowhere", p.path, l.text, l.target)
				continue
			}
			if l.anchor != "" && filepath.Ext(l.file) == ".md" && !slices.Contains(pages[l.file].anchors(), l.anchor) {
				t.Errorf("%s: [%s](%s): the page has no such heading", p.path, l.text, l.target)
			}
		}
	}
	if links < 300 {
		t.Errorf("only %d links were found", links)
	}
}

// Every page that a source names by its path exists.
func TestSourcesNamePagesThatExist(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`(?:^|[^/\w.-])(?:(?:\.\./)+)?(docs/[\w/-]+\.(?:md|svg))`)
	names := 0
	for _, top := range []string{"Makefile", ".golangci.yml", "cmd", "internal", "bench", "loadtest", "deployments", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d os.DirEntry, err error) error {
			switch {
			case err == nil && d.Name() == "node_modules": // of other projects
				return filepath.SkipDir
			case err != nil || d.IsDir() || filepath.Ext(path) == ".md":
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range form.FindAllStringSubmatch(string(text), -1) {
				names++
				if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
					t.Errorf("%s names %s, which does not exist", path, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if names < 10 {
		t.Errorf("only %d pages are named", names)
	}
}

// A page is short enough to be read at once. A reader searches in pages that the program generates, and does not read them.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	for _, p := range readPages(t) {
		if n := p.words(); n > maxPageWords && !strings.Contains(p.text, "`make gen` writes this page") {
			t.Errorf("%s has %d words, and may have %d", p.path, n, maxPageWords)
		}
	}
}

// Links lead from docs/index.md to every page below docs.
func TestPagesAreReachable(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	reached := map[string]bool{"docs/index.md": true}
	for next := []string{"docs/index.md"}; len(next) > 0; next = next[1:] {
		for _, l := range pages[next[0]].links {
			file := l.file
			if filepath.Ext(file) == "" && pages[file+"/README.md"].path != "" {
				file += "/README.md"
			}
			// A way through the README of the project is none: it leads to the index.
			if strings.HasPrefix(file, "docs/") && pages[file].path != "" && !reached[file] {
				reached[file] = true
				next = append(next, file)
			}
		}
	}
	for path := range pages {
		if strings.HasPrefix(path, "docs/") && !reached[path] {
			t.Errorf("no link leads from docs/index.md to %s", path)
		}
	}
}

var (
	testForm  = regexp.MustCompile(`\b(?:Test|Benchmark|Example)[A-Z]\w*(?:/\w+)?`)
	casesForm = regexp.MustCompile(`^[A-Z]\w+(?:, [A-Z]\w+)*$`)
	funcForm  = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Example|Fuzz)\w*)\(`)
)

// Every test that a page names exists: in the file or folder to which its link leads, or else anywhere. A part that
// follows a slash, and a case of conformance tests, are strings in the sources of the folder or of the conformance
// tests.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	s := readSources(t)
	tests := 0
	for _, p := range readPages(t) {
		for _, l := range p.links {
			names := testForm.FindAllString(l.text, -1)
			tests += len(names)
			for _, name := range names {
				if !s.test(l.file, name) {
					t.Errorf("%s: %s has no test %s", p.path, l.file, name)
				}
			}
			if strings.HasSuffix(l.file, "test") && casesForm.MatchString(l.text) {
				for name := range strings.SplitSeq(l.text, ", ") {
					if tests++; !s.has(l.file, name) {
						t.Errorf("%s: the suite %s has no case %s", p.path, l.file, name)
					}
				}
			}
		}
		for _, name := range testForm.FindAllString(linkForm.ReplaceAllString(p.prose(), ""), -1) {
			if tests++; !s.test("", name) {
				t.Errorf("%s: there is no test %s", p.path, name)
			}
		}
	}
	if tests < 300 {
		t.Errorf("only %d tests were found on the pages", tests)
	}
}

// sources are the texts of the Go files of tests and conformance tests, by path below root.
type sources map[string]string

func readSources(t *testing.T) sources {
	t.Helper()
	s := make(sources)
	for _, top := range []string{"cmd", "internal", "bench", "deployments"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			suite := strings.HasSuffix(filepath.Dir(path), "test") && filepath.Ext(path) == ".go"
			if !suite && !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			s[filepath.ToSlash(name)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// test reports whether a file or folder has a test with that name. An empty path is everything.
func (s sources) test(path, name string) bool {
	name, part, _ := strings.Cut(name, "/")
	for file, text := range s {
		if path != "" && file != path && filepath.ToSlash(filepath.Dir(file)) != path {
			continue
		}
		for _, m := range funcForm.FindAllStringSubmatch(text, -1) {
			if m[1] == name {
				return part == "" || s.has(filepath.ToSlash(filepath.Dir(file)), part) || s.inSuite(part)
			}
		}
	}
	return false
}

// has reports whether a file of the folder has the string.
func (s sources) has(folder, text string) bool {
	for file, source := range s {
		if filepath.ToSlash(filepath.Dir(file)) == folder && strings.Contains(source, `"`+text+`"`) {
			return true
		}
	}
	return false
}

// inSuite reports whether any conformance tests have a case with that name.
func (s sources) inSuite(name string) bool {
	for file := range s {
		if folder := filepath.ToSlash(filepath.Dir(file)); strings.HasSuffix(folder, "test") && s.has(folder, name) {
			return true
		}
	}
	return false
}
