package dlock_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests of this file and of docs_matrix_test.go compare two pages with the code. TestPageLinksResolve and its
// siblings in package internal check links and names on all pages.
const (
	folder         = "../../docs/reference"
	matrix         = folder + "/failure-matrix.md"
	abilities      = folder + "/lock-capabilities.md"
	conformanceDir = "dlocktest"
	conformanceURL = "../../internal/dlock/" + conformanceDir
)

var (
	linkForm   = regexp.MustCompile(`\[([^][]+)\](?:\(([^)]+)\)|\[([^][]+)\])(†?)`)
	targetForm = regexp.MustCompile(`(?m)^\[([^][]+)\]: (\S+)\n`)
	testForm   = regexp.MustCompile(`\b(?:Test|Benchmark|Example)[A-Z]\w*(?:/\w+)?`)
	casesForm  = regexp.MustCompile(`^[A-Z]\w+(?:, [A-Z]\w+)*$`)
	codeForm   = regexp.MustCompile("`([^`]+)`")
)

// link is a link of a document. A † behind it marks a test that runs at full size only.
type link struct {
	text, target string
	marked       bool
}

// document is a file in Markdown.
type document struct {
	text  string // without the targets of links
	links []link
}

func read(t *testing.T, name string) document {
	t.Helper()
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{}
	for _, m := range targetForm.FindAllStringSubmatch(string(all), -1) {
		targets[m[1]] = m[2]
	}
	d := document{text: targetForm.ReplaceAllString(string(all), "")}
	for _, m := range linkForm.FindAllStringSubmatch(d.text, -1) {
		target := m[2]
		if m[3] != "" {
			target = targets[m[3]]
		}
		d.links = append(d.links, link{m[1], target, m[4] != ""})
	}
	return d
}

// tables returns the cells of each table, without the line below its header.
func (d document) tables() (all [][][]string) {
	var table [][]string
	for line := range strings.Lines(d.text + "\n\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if table != nil {
				all = append(all, table)
			}
			table = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.Trim(cells[0], "-:") != "" || cells[0] == "" {
			table = append(table, cells)
		}
	}
	return all
}

// table returns the table whose header begins with these cells.
func (d document) table(t *testing.T, header ...string) [][]string {
	t.Helper()
	for _, table := range d.tables() {
		if len(table[0]) >= len(header) && slices.Equal(table[0][:len(header)], header) {
			return table[1:]
		}
	}
	t.Fatalf("no table has the header %q", header)
	return nil
}

// Each test that the pages name is in the file of its link, and is not skipped there. A † marks a test that make test
// leaves out.
func TestMatrixNamesItsTests(t *testing.T) {
	conformance := parse(t, conformanceDir, false)
	sources := map[string]source{}
	tests, cases := 0, 0
	for _, l := range slices.Concat(read(t, matrix).links, read(t, abilities).links) {
		file := filepath.Join(folder, l.target)
		if l.target == conformanceURL && casesForm.MatchString(l.text) {
			for name := range strings.SplitSeq(l.text, ", ") {
				if cases++; !conformance.has(name) {
					t.Errorf("there is no conformance test %s", name)
				}
			}
		}
		for _, name := range testForm.FindAllString(l.text, -1) {
			dir := filepath.Dir(file)
			s, ok := sources[dir]
			if !ok {
				s = parse(t, dir, true)
				sources[dir] = s
			}
			tests++
			s.shows(t, conformance, l, name)
		}
	}
	if tests < 100 || cases < 30 {
		t.Errorf("only %d tests and %d cases are named: the pages were not understood", tests, cases)
	}
}

// shows checks that s has the test to which l links, whose part may be a case of the conformance tests.
func (s source) shows(t *testing.T, conformance source, l link, name string) {
	t.Helper()
	test, part, _ := strings.Cut(name, "/")
	switch f := s.funcs[test]; {
	case f.file != path.Base(l.target):
		t.Errorf("%s is not in %s", test, l.target)
	case part != "" && !conformance.has(part) && !s.has(part):
		t.Errorf("%s has no part %s", test, part)
	case l.marked != s.fullSize(test):
		t.Errorf("%s: marked with † %v, runs at full size only %v", name, l.marked, !l.marked)
	}
	for _, field := range conformance.needs(part) {
		if !s.set[field] {
			t.Errorf("%s is skipped there, as no test sets %s: %s", name, field, l.target)
		}
	}
}

// Each question of the first table is answered for each backend, and each answer has its
// test, or says that there is none.
func TestMatrixAnswersEveryQuestion(t *testing.T) {
	want := []string{"redislock", "redislock, Sentinel", "redlock", "zklock", "etcdlock", "sqllock, SQLite", "sqllock, MariaDB"}
	var question string
	answered := map[string][]string{}
	for _, row := range read(t, matrix).table(t, "backend", "what happens", "shown by") {
		if bold, ok := strings.CutPrefix(row[0], "**"); ok {
			question = strings.TrimSuffix(bold, "**")
			answered[question] = nil
			continue
		}
		if row[0] != "memlock" { // where it makes sense
			answered[question] = append(answered[question], row[0])
		}
		if row[1] == "" || !testForm.MatchString(row[2]) && !strings.Contains(row[2], "no test") && row[2] != "does not apply" {
			t.Errorf("%s: %s: no answer, or nothing that shows it: %q", question, row[0], row[1:])
		}
	}
	for question, by := range answered {
		if !slices.Equal(by, want) {
			t.Errorf("%s is answered for %q, want %q", question, by, want)
		}
	}
	if len(answered) != 8 {
		t.Errorf("%d questions, want 8", len(answered))
	}
}
