package orderpath_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	architecture = root + "/docs/architecture.md"
	tableHead    = "| strategy | packages | files | lines in them | functions | lines in them | executed lines | generated functions | lines in them | forms | enters order | stock | dlock |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
)

// slack is by how many percent the lines of a path may exceed the table: a comment needs no new measurement. Packages, files, functions and entries may not
// exceed it.
const slack = 2

// values returns the figures in the order of the columns.
func (f *figures) values() []*int {
	return []*int{
		&f.packages, &f.files, &f.fileLines, &f.functions, &f.functionLines, &f.executed, &f.generated, &f.generatedLines, &f.forms,
		&f.entered.order, &f.entered.stock, &f.entered.dlock,
	}
}

var columns = []struct {
	name  string
	slack int
}{
	{"packages", 0},
	{"files", 0},
	{"lines in files", slack},
	{"functions", 0},
	{"lines in functions", slack},
	{"executed lines", slack},
	{"generated functions", 0},
	{"lines in generated functions", slack},
	{"forms", 0},
	{"entries into order", 0},
	{"entries into stock", 0},
	{"entries into dlock", 0},
}

var tableForm = regexp.MustCompile(regexp.QuoteMeta(tableHead) + `((?:\|.*\|\n)*)`)

// writeTable replaces the rows of the strategies that were measured.
func writeTable(t *testing.T, all map[string]measured) {
	t.Helper()
	table := readTable(t)
	var rows strings.Builder
	for _, g := range groups {
		for _, s := range g.strategies {
			f := table[s]
			if m, ok := all[s]; ok {
				f = m.bounds
			}
			rows.WriteString("| " + s)
			for _, v := range f.values() {
				fmt.Fprintf(&rows, " | %d", *v)
			}
			rows.WriteString(" |\n")
		}
	}
	page := readFile(t, architecture)
	if !tableForm.Match(page) {
		t.Fatalf("%s has no table of paths", architecture)
	}
	if err := os.WriteFile(architecture, tableForm.ReplaceAllLiteral(page, []byte(tableHead+rows.String())), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readTable returns the figures of the table.
func readTable(t *testing.T) map[string]figures {
	t.Helper()
	table := tableForm.FindSubmatch(readFile(t, architecture))
	if table == nil {
		t.Fatalf("%s has no table of paths", architecture)
	}
	all := make(map[string]figures)
	for row := range strings.SplitSeq(strings.TrimSuffix(string(table[1]), "\n"), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 1+len(columns) {
			t.Fatalf("the row %q has %d cells", row, len(cells))
		}
		var f figures
		for i, v := range f.values() {
			*v = number(t, cells[1+i])
		}
		all[cells[0]] = f
	}
	return all
}

// beyond returns which figures exceed their bounds.
func (f figures) beyond(bound figures) (problems []string) {
	for i, c := range columns {
		if n, most := *f.values()[i], *bound.values()[i]; n*100 > most*(100+c.slack) {
			problems = append(problems, fmt.Sprintf("%d %s on its path, and may have %d", n, c.name, most))
		}
	}
	return problems
}

// checkTable fails the test if a path is longer than the table says.
func checkTable(t *testing.T, all map[string]measured) {
	t.Helper()
	table := readTable(t)
	rows := 0
	for _, g := range groups {
		rows += len(g.strategies)
	}
	if len(table) != rows {
		t.Errorf("the table has %d strategies, want %d", len(table), rows)
	}
	for s, m := range all {
		if _, ok := table[s]; !ok {
			t.Errorf("the table has no %s: make order-path", s)
		}
		for _, problem := range m.figures.beyond(table[s]) {
			t.Errorf("%s has %s", s, problem)
		}
	}
}

func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
