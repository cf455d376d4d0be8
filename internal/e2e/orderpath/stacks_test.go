package orderpath_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// entries has how often the path enters a package from another one.
type entries struct{ order, stock, dlock int }

// goroutine is a goroutine that waits.
type goroutine struct {
	id, parent string
	packages   []string // of this repository that have its frames, the outermost first; a package follows itself only after another one
}

var (
	goroutineForm = regexp.MustCompile(`^goroutine (\d+) `)
	frameForm     = regexp.MustCompile(`(?m)^(created by )?` + module + `internal/([\w/]+)\.[^\n]*?(?: in goroutine (\d+))?$`)
	parentForm    = regexp.MustCompile(`(?m)^created by .* in goroutine (\d+)$`)
)

// readStacks reads what runtime.Stack has written.
func readStacks(text string) (all []goroutine) {
	for stack := range strings.SplitSeq(text, "\n\n") {
		id := goroutineForm.FindStringSubmatch(stack)
		if id == nil {
			continue
		}
		g := goroutine{id: id[1]}
		if p := parentForm.FindStringSubmatch(stack); p != nil {
			g.parent = p[1]
		}
		for _, frame := range frameForm.FindAllStringSubmatch(stack, -1) {
			if frame[1] == "" { // else it is a frame of the parent
				g.packages = append(g.packages, strings.Split(frame[2], "/")[0])
			}
		}
		slices.Reverse(g.packages)
		g.packages = slices.Compact(g.packages)
		all = append(all, g)
	}
	return all
}

// entered places an order that stops at the INSERT of its rows, because another connection holds a lock on their table. It
// counts how often the stacks enter a package: from the handler of the request to the statement, through all goroutines.
func (in *instance) entered(t *testing.T, sku string) (n entries) {
	t.Helper()
	db, err := testbedtest.OpenSQL(t, in.database).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "LOCK TABLES orders READ"); err != nil {
		t.Fatal(err)
	}
	placed := make(chan string, 1)
	go func() { placed <- in.insist(t, sku) }()
	testbedtest.Eventually(t, "the order waits for the table", func() bool {
		var waiting int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.processlist "+
			"WHERE db = DATABASE() AND state = 'Waiting for table metadata lock' AND info LIKE 'INSERT%'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting > 0
	})
	file := filepath.Join(t.TempDir(), "stacks")
	in.tell(t, "stacks "+file)
	way := wayOf(readStacks(string(readFile(t, file))))
	if _, err := db.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if problem := <-placed; problem != "" {
		t.Error(problem)
	}
	if way == nil {
		t.Fatal("no goroutine of the order is in the store")
	}
	t.Logf("%s enters %s", sku, strings.Join(way, ", "))
	for _, p := range way {
		switch p {
		case "order":
			n.order++
		case "stock":
			n.stock++
		case "dlock":
			n.dlock++
		}
	}
	return n
}

// wayOf returns the packages in the order in which an order enters them: those of the goroutine that serves its request, and
// those of the goroutine that waits for the database, with the goroutines that have started it. It returns nil if there is none.
func wayOf(all []goroutine) []string {
	byID := make(map[string]goroutine)
	for _, g := range all {
		byID[g.id] = g
	}
	serving := slices.IndexFunc(all, func(g goroutine) bool { return contains(g, "httpapi") && contains(g, "order") })
	storing := slices.IndexFunc(all, func(g goroutine) bool {
		return contains(g, "order") && contains(g, "sqlstore") && g.packages[len(g.packages)-1] != "order"
	})
	if serving < 0 || storing < 0 {
		return nil
	}
	var way []string
	for g, ok := all[storing], true; ok && g.id != all[serving].id; g, ok = byID[g.parent] {
		way = slices.Concat(g.packages, way)
	}
	return slices.Compact(slices.Concat(all[serving].packages, way))
}

func contains(g goroutine, pkg string) bool { return slices.Contains(g.packages, pkg) }
