package dlock_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/fault-tests.md")

const faultsPage = folder + "/fault-tests.md"

// The prose of the page, in front of its two tables.
const (
	faultsIntro = `# Fault tests of the locks

The faults that the tests of each lock backend cause, and the outcome. The [failure matrix](failure-matrix.md) explains the outcomes, and
has the versions of the servers. ` + "`make gen`" + ` writes this page from the source of the tests.
[TestFaultTables](../../internal/dlock/docs_faults_test.go) fails if the page differs.

## Conformance tests

Each backend runs the same [cases](../../internal/dlock/dlocktest). These are the cases that do harm:

- *yes*: the tests of the backend run the case. A dash: the backend lacks the capability, or no test causes the fault there.
- sqllock is on MariaDB here. The same cases run on PostgreSQL, and on SQLite, except those that break a network.

`
	historiesIntro = `
## Histories

Several clients contend for keys during a fault, and a checker judges what they saw. The word in a cell is what the checker allows:

- *exclusive*: no two holders are concurrent, and each holder is notified of a loss before the next grant.
- *paused holder*: the same, except that a paused process considers its lease valid until it resumes. Its late requests have no effect.
- *tokens only*: holders can be concurrent during the fault. Fencing tokens still increase.
- A dash: the backend has no history of this fault. † marks a test that runs only at full size, by ` + "`make soak`" + `.

`
)

// faultColumns are the backends, and the tests that run the conformance tests on a real server of each.
var faultColumns = []faultColumn{
	{"memlock", "TestLocker"},
	{"redislock", "TestRedis"},
	{"redlock", "TestFive"},
	{"zklock", "TestLocker"},
	{"etcdlock", "TestLocker"},
	{"sqllock", "TestMariaDB"},
}

// faultColumn is a backend of a table.
type faultColumn struct{ folder, test string }

// inHistories are those with a store that can fail.
var inHistories = faultColumns[1:]

// faultHooks are the fields of a harness by which a case does harm, the most harmful first.
var faultHooks = []string{"Behind", "Wipe", "Deaf", "Foreign", "Expire"}

// notOfFaults are a case and histories without faults, those that must fail, and those of semaphores or of package share alone.
var notOfFaults = []string{
	"CloseInsideOnEnd", "LossEndsTheTurns", "WithoutFaults", "OfConditions", "OfResizes", "CatchesTheTextbookLock", "OfALossThatAllHoldersKnow",
}

// docs/reference/fault-tests.md shows the faults of the tests as they are. `make gen` writes it.
func TestFaultTables(t *testing.T) {
	t.Parallel()
	page := faultsIntro + conformanceTable(t) + historiesIntro + historyTable(t)
	if *update {
		if err := os.WriteFile(faultsPage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(faultsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != page {
		t.Error("docs/reference/fault-tests.md is stale: make gen")
	}
}

// conformanceTable has the conformance tests that do harm, by the kind of harm.
func conformanceTable(t *testing.T) string {
	t.Helper()
	conformance, tests := parse(t, conformanceDir, false), parseBackends(t)
	var out strings.Builder
	header(&out, faultColumns, "guarantee")
	rows := 0
	for _, hook := range faultHooks {
		fmt.Fprintf(&out, "| **%s** |%s\n", conformance.hookWords(t, hook), strings.Repeat(" |", len(faultColumns)))
		for _, c := range conformance.cases() {
			if conformance.harms(c.run) != hook || slices.Contains(notOfFaults, c.name) {
				continue
			}
			rows++
			fmt.Fprintf(&out, "| [%s](%s/%s) |", words(c.name), conformanceURL, conformance.funcs[c.run].file)
			for i, column := range faultColumns {
				own, cell := tests[i], "-"
				if conformance.runs(c, column.folder, own) {
					cell = fmt.Sprintf("[yes](../../internal/dlock/%s/%s)", column.folder, own.funcs[column.test].file)
				}
				fmt.Fprintf(&out, " %s |", cell)
			}
			out.WriteString("\n")
		}
	}
	if rows < 20 || len(faultColumns) != len(backends()) {
		t.Fatalf("%d cases do harm, and %d of %d backends have a column", rows, len(faultColumns), len(backends()))
	}
	return out.String()
}

// historyTable has the faults under which histories are recorded. The outcome is what the checks of the history allow.
func historyTable(t *testing.T) string {
	t.Helper()
	cells, said := map[string]map[string]string{}, map[string]string{}
	var order []string
	for i, own := range parseBackends(t) {
		folder := faultColumns[i].folder
		for _, name := range own.histories() {
			f, fault := own.funcs[name], strings.TrimPrefix(name, "TestHistory")
			if cells[fault] == nil {
				order, cells[fault], said[fault] = append(order, fault), map[string]string{}, sentence(t, name, f.Doc.Text())
			}
			outcome := "exclusive"
			switch {
			case own.calls(name, "LoseAll"):
				outcome = "tokens only"
			case own.calls(name, "StartHolder"):
				outcome = "paused holder"
			}
			mark := map[bool]string{true: "†"}[own.fullSize(name)]
			cells[fault][folder] = fmt.Sprintf("[%s](../../internal/dlock/%s/%s)%s", outcome, folder, f.file, mark)
		}
	}
	var out strings.Builder
	header(&out, inHistories, "fault", "the test")
	for _, fault := range order {
		fmt.Fprintf(&out, "| %s | %s |", words(regexp.MustCompile("^(Of|With|On)").ReplaceAllString(fault, "")), said[fault])
		for _, column := range inHistories {
			fmt.Fprintf(&out, " %s |", cmp.Or(cells[fault][column.folder], "-"))
		}
		out.WriteString("\n")
	}
	if len(order) < 15 {
		t.Fatalf("only %d faults have histories: the tests were not understood", len(order))
	}
	return out.String()
}

// parseBackends returns the tests of each column.
func parseBackends(t *testing.T) (all []source) {
	t.Helper()
	for _, column := range faultColumns {
		all = append(all, parse(t, column.folder, true))
	}
	return all
}

// header writes the head of a table with a column per backend.
func header(out *strings.Builder, columns []faultColumn, first ...string) {
	for _, column := range columns {
		first = append(first, column.folder)
	}
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(first, " | "), strings.Repeat("---|", len(first)))
}

// words returns a name such as LateReleaseIsHarmless as words.
func words(name string) string {
	all := regexp.MustCompile("[A-Z][a-z]+|A|[A-Z]+").FindAllString(name, -1)
	for i := 1; i < len(all); i++ {
		if len(all[i]) == 1 || all[i] != strings.ToUpper(all[i]) {
			all[i] = strings.ToLower(all[i])
		}
	}
	return strings.Join(all, " ")
}

// sentence returns the first sentence of a comment, without the name in front.
func sentence(t *testing.T, name, comment string) string {
	t.Helper()
	text, ok := strings.CutPrefix(strings.Join(strings.Fields(comment), " "), name+" ")
	first, _, _ := strings.Cut(text, ". ")
	if !ok || first == "" {
		t.Fatalf("%s has no comment that begins with its name: %q", name, comment)
	}
	return strings.TrimSuffix(first, ".")
}

// hookWords returns what a field of the harness does to a store, in the words of its comment.
func (s source) hookWords(t *testing.T, hook string) string {
	t.Helper()
	harness, ok := s.types["Harness"].(*ast.StructType)
	if !ok {
		t.Fatal("the suite has no Harness")
	}
	at := slices.IndexFunc(harness.Fields.List, func(f *ast.Field) bool { return len(f.Names) == 1 && f.Names[0].Name == hook })
	return "The test " + sentence(t, hook, harness.Fields.List[at].Doc.Text())
}

// harms returns the field of the harness by which a conformance test does harm, or nothing.
func (s source) harms(run string) string {
	at := slices.IndexFunc(faultHooks, func(hook string) bool { return s.calls(run, hook) })
	if at < 0 {
		return ""
	}
	return faultHooks[at]
}

// runs reports whether a case runs on a backend, whose tests are own, and is not skipped there.
func (s source) runs(c testCase, folder string, own source) bool {
	for _, field := range append(s.needs(c.name), "Harness."+s.harms(c.run)) {
		if !own.set[field] {
			return false
		}
	}
	of := backends()[slices.IndexFunc(backends(), func(b backend) bool { return b.name == folder })].typed("Locker")
	missing := false
	for _, f := range s.reaches(c.run) {
		ast.Inspect(f, func(n ast.Node) bool {
			if i, ok := n.(*ast.IndexExpr); ok && written(i.X) == "optional" {
				capability, known := capabilities()[lastName(written(i.Index))]
				missing = missing || known && !of.Implements(capability)
			}
			return true
		})
	}
	return !missing
}

// histories returns the names of the tests that record a history under faults, in their order.
func (s source) histories() (names []string) {
	for name := range s.funcs {
		fault, ok := strings.CutPrefix(name, "TestHistory")
		if ok && !slices.Contains(notOfFaults, fault) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		f, g := s.funcs[a], s.funcs[b]
		return cmp.Or(strings.Compare(f.file, g.file), cmp.Compare(f.Pos(), g.Pos()))
	})
	return names
}
