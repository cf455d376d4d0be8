package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// root is the folder of the module.
const root = ".."

var (
	fenceForm   = regexp.MustCompile("(?ms)^ *```.*?^ *```[^\n]*$")
	codeForm    = regexp.MustCompile("`[^`\n]+`")
	linkForm    = regexp.MustCompile(`\[((?:[^][]|\[[^][]*\])*)\](?:\(([^()\s]+)\)|\[([^][]+)\])`)
	targetForm  = regexp.MustCompile(`(?m)^\[([^][]+)\]: (\S+)$`)
	headingForm = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	wordForm    = regexp.MustCompile(`\p{L}[\p{L}\p{N}_'-]*`)
)

// page is a file in Markdown.
type page struct {
	path  string // below root, with slashes
	text  string // with code, without the targets of links
	links []link
}

// link is a link of a page.
type link struct {
	text   string
	target string // as written
	file   string // below root; empty if it leads out of the repository
	anchor string
}

// readPages returns all pages of the repository, by path.
func readPages(t *testing.T) map[string]page {
	t.Helper()
	pages := make(map[string]page)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		text, err := os.ReadFile(path)
		pages[name] = parsePage(t, name, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 5 || pages["docs/index.md"].path == "" {
		t.Fatalf("%d pages, and docs/index.md is one: %v", len(pages), pages["docs/index.md"].path != "")
	}
	return pages
}

func parsePage(t *testing.T, path, text string) page {
	t.Helper()
	targets, used := map[string]string{}, map[string]bool{}
	for _, m := range targetForm.FindAllStringSubmatch(text, -1) {
		targets[m[1]] = m[2]
	}
	p := page{path: path, text: targetForm.ReplaceAllString(text, "")}
	for _, m := range linkForm.FindAllStringSubmatch(p.prose(), -1) {
		target := m[2]
		if m[3] != "" {
			target = targets[m[3]]
			used[m[3]] = true
		}
		if target == "" {
			t.Errorf("%s: the link %s has no target", path, m[0])
			continue
		}
		p.links = append(p.links, resolve(path, m[1], target))
	}
	for name := range targets {
		if !used[name] {
			t.Errorf("%s: no link uses the target %s", path, name)
		}
	}
	return p
}

// resolve returns the link with text to target in the page at path.
func resolve(path, text, target string) link {
	l := link{text: text, target: target}
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return l
	}
	file, anchor, _ := strings.Cut(target, "#")
	l.file, l.anchor = path, anchor
	if file != "" {
		l.file = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
	}
	return l
}

// prose is the text without blocks and spans of code.
func (p page) prose() string {
	return codeForm.ReplaceAllStringFunc(fenceForm.ReplaceAllString(p.text, ""), func(code string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("[]()", r) {
				return '.'
			}
			return r
		}, code)
	})
}

// words counts the words that a reader reads: no code blocks, targets of links or numbers.
func (p page) words() int {
	return len(wordForm.FindAllString(linkForm.ReplaceAllString(p.prose(), "$1"), -1))
}

// anchors are the anchors of the headings.
func (p page) anchors() []string {
	var all []string
	for _, m := range headingForm.FindAllStringSubmatch(fenceForm.ReplaceAllString(p.text, ""), -1) {
		heading := linkForm.ReplaceAllString(m[1], "$1")
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading)))
	}
	return all
}

// tables returns the rows of the tables whose header begins with these cells, without that header.
func (p page) table(t *testing.T, header ...string) (rows [][]string) {
	t.Helper()
	in := false
	for line := range strings.Lines(p.text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			in = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) >= len(header) && slices.Equal(cells[:len(header)], header) {
			in = true
			continue
		}
		if in && strings.Trim(cells[0], "-:") != "" {
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Errorf("%s: no table has the header %q", p.path, header)
	}
	return rows
}
