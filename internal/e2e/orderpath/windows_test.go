package orderpath_test

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// follows is how long an order is followed. Its events take up to 500 ms, and its entry in the timer index 100 ms.
	follows = 600 * time.Millisecond

	// orders is how many orders of a strategy are measured, one after the other. There are more if few of them are quick.
	orders = 12

	// quickOrders have a response within quick. The most frequent heartbeat of an instance, of its permits, has a period of 250 ms, so it is not
	// in all of them.
	quickOrders = 10
	quick       = 150 * time.Millisecond

	// attempts bounds the orders.
	attempts = 16 * orders

	// settles is the time after which nothing follows an order: a lease of 2 s has expired by then.
	settles = 2200 * time.Millisecond

	// idles is how long an idle instance is measured. Its slowest heartbeats have a period of 2 s.
	idles = 8 * time.Second
)

// block is a block of code, as the coverage counts it.
type block struct {
	file        string // below the root of the repository
	first, last int    // lines
	columns     [2]int // of both
}

// window has the blocks that ran, and how often.
type window map[block]int

// sale has the windows of the orders of a strategy.
type sale struct {
	answered []window // from the request to the response
	followed []window // the same and what follows
}

// measure places orders, one after the other. Nothing follows an earlier order while it measures the first one.
func (in *instance) measure(t *testing.T, sku string) (s sale) {
	t.Helper()
	time.Sleep(settles)
	for tried, fast := 0, 0; fast < quickOrders || len(s.answered) < orders; tried++ {
		if tried == attempts {
			t.Fatalf("of %d orders, %d had a response within %v: the machine is too slow to measure", attempts, fast, quick)
		}
		in.tell(t, "clear")
		began := time.Now()
		if problem := in.place(t, sku); strings.Contains(problem, "status 429") { // its permits came too late, so it is no order
			time.Sleep(settles)
			continue
		} else if problem != "" {
			t.Fatal(problem)
		}
		answered := in.write(t)
		late := time.After(follows)
		if time.Since(began) < quick {
			fast++
		}
		s.answered = append(s.answered, in.read(t, answered))
		<-late
		s.followed = append(s.followed, in.read(t, in.write(t)))
	}
	return s
}

// idle counts what an instance runs that has nothing to do.
func (in *instance) idle(t *testing.T) window {
	t.Helper()
	time.Sleep(settles)
	in.tell(t, "clear")
	time.Sleep(idles)
	return in.read(t, in.write(t))
}

// write returns a folder with the counters as they are.
func (in *instance) write(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	in.tell(t, "write "+folder)
	return folder
}

// read returns the counters in folder.
func (in *instance) read(t *testing.T, folder string) window {
	t.Helper()
	text := filepath.Join(folder, "text")
	if out, err := exec.CommandContext(t.Context(), covdata(t), "textfmt", "-i="+folder+","+in.meta, "-o="+text).CombinedOutput(); err != nil {
		t.Fatalf("covdata: %v\n%s", err, out)
	}
	mode, lines, _ := strings.Cut(string(readFile(t, text)), "\n")
	if mode != "mode: atomic" {
		t.Fatalf("%q: the counters are not atomic", mode)
	}
	ran := make(window)
	for line := range strings.Lines(lines) {
		if strings.HasSuffix(line, " 0\n") { // most blocks did not run
			continue
		}
		b, n := parse(t, line)
		if b.file != commandsFile {
			ran[b] += n
		}
	}
	return ran
}

// parse reads a line: PACKAGE/FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS RUNS.
func parse(t *testing.T, line string) (b block, runs int) {
	t.Helper()
	file, rest, _ := strings.Cut(strings.TrimPrefix(line, module), ":")
	b.file = file
	var from, to, statements int
	if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d\n", &b.first, &from, &b.last, &to, &statements, &runs); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	b.columns = [2]int{from, to}
	return b, runs
}

// covdata returns the tool of Go that reads counters.
func covdata(t *testing.T) string {
	t.Helper()
	tool, err := findCovdata()
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

var findCovdata = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("go", "tool", "-n", "covdata").Output()
	return strings.TrimSpace(string(path)), err
})

// often returns the blocks that ran in at least so many of the windows.
func often(windows []window, least int) window {
	in := make(map[block]int)
	for _, w := range windows {
		for b := range w {
			in[b]++
		}
	}
	maps.DeleteFunc(in, func(_ block, n int) bool { return n < least })
	return in
}

// counted are the packages of which nothing is subtracted.
var counted = []string{"httpapi", "order", "stock", "dlock", "sqlstore"}

// isCounted reports whether a file is of one of these packages, or of one below.
func isCounted(file string) bool {
	return slices.ContainsFunc(counted, func(p string) bool { return strings.HasPrefix(file, "internal/"+p+"/") })
}

// path returns the blocks on the path of an order, and those that were subtracted. On the path are all that every order ran between its
// request and its response, whatever the idle instance runs. What follows the response is on it if at least so many orders ran it. It is
// subtracted if the idle instance runs it too, unless its package is in counted.
func (s sale) path(idle window, least int) (path, subtracted window) {
	path, subtracted = often(s.answered, len(s.answered)), make(window)
	for b, n := range often(s.followed, least) {
		if path[b] > 0 || idle[b] == 0 || isCounted(b.file) {
			path[b] = n
		} else {
			subtracted[b] = n
		}
	}
	return path, subtracted
}

// certain is path for what nearly every order ran, and the first one, which follows no other. A path is too long only by these blocks.
func (s sale) certain(idle window) (path, subtracted window) {
	path, subtracted = s.path(idle, len(s.followed)-1)
	maps.DeleteFunc(path, func(b block, _ int) bool { return s.followed[0][b] == 0 })
	return path, subtracted
}

// bounding is path for what a third of the orders ran. It is what the table has, as what follows a response varies.
func (s sale) bounding(idle window) window {
	path, _ := s.path(idle, len(s.followed)/3)
	return path
}
