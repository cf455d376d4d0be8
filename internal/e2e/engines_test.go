package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// engine is a database on one server, or on three.
type engine struct {
	name  string
	start func(t *testing.T) *servers
}

// engines are those on which a sale is tried, whatever happens to one of their servers. The usual run has the first.
var engines = []engine{
	{"galera", startGalera},
	{"MariaDB, semi-synchronous", startSemiSync},
	{"MariaDB, asynchronous", startAsync},
	{"MySQL Group Replication", startGroup},
	{"MySQL 9, one server", startOneMariaDB("mysql-9")},
	{"MariaDB 11.8, one server", startOneMariaDB("mariadb-11.8")},
	{"PostgreSQL 17, one server", startOnePostgres},
	{"PostgreSQL, synchronous", startSynchronous},
	{"PostgreSQL, asynchronous", startAsyncStandbys},
	{"PostgreSQL, Patroni", startPatroni},
}

// servers are those of an engine, or of a lock service, that runs.
type servers struct {
	nodes      []string    // addresses of databases that all have every order
	databases  [3]string   // one for each instance
	flags      [3][]string // of each instance; default: a Redis
	strategies []string    // default: exact
	faults     []engineFault
	loses      bool          // acknowledged orders, if the writer fails
	waits      time.Duration // for how long a COMMIT waits for replicas
	usual      int           // faults that happen unless at full size; default: one
	promoted   time.Time     // when a fault was over, and clients could find the new writer
}

// engineFault is what happens to servers in the middle of a sale.
type engineFault struct {
	name string
	do   func() // ends when it is mended, unless mend does that
	says string // what each instance answers until mend, as no order can be placed: a type of problem
	mend func() // after orders were placed in spite of the fault, or without any if it says something
}

// exact are the strategies that must not oversell.
var exact = []string{"conditional", "for-update", "optimistic", "redis", "redis-cohort", "lua", "sql", "sql-cohort"}

// mostWait is how long a response may take while servers are away.
const mostWait = 12 * time.Second

// Three instances sell by all exact strategies while servers fail and are mended. Each acknowledged order is a row, and no request
// is two. Nothing is oversold, and limits per customer hold. At full size all faults happen to each engine, and the page is written.
func TestSaleOnThreeServers(t *testing.T) {
	t.Parallel()
	pages := make([]string, len(engines))
	if testbedtest.Size(0, 1) == 1 {
		t.Cleanup(func() { writeFaults(t, "engines", enginesHead, pages) })
	}
	for i, e := range engines[:testbedtest.Size(1, len(engines))] {
		t.Run(e.name, func(t *testing.T) {
			if testbedtest.Size(0, 1) == 0 {
				t.Parallel()
			}
			pages[i] = sellThroughFaults(t, e.name, e.start(t))
		})
	}
}

// resumes is for how long a SKU may not be sold after a fault. A lease or a session of a client that was cut off may have to expire.
const resumes = 20 * time.Second

// mends is for how long a SKU may not be sold while a server comes back, after orders were placed without it. All buyers may have to wait
// for one response, but not for two.
const mends = mostWait

// follows is how long instances take at most to find a writer that has been promoted, and that accepts connections at once. On a busy
// machine a server that starts a process for each takes seconds.
const follows = 3 * time.Second

// sellThroughFaults returns the rows of the page for an engine.
func sellThroughFaults(t *testing.T, name string, all *servers) (rows string) {
	t.Helper()
	columns := all.strategies == nil // of the page: a standstill for each strategy, or the longest
	if columns {
		all.strategies = exact
	}
	s := newMidSale(t, openShop(t, all, "--order-ttl", "10s"), all.strategies...)
	s.mu.Lock()
	s.lossy, s.waits = all.loses, all.waits
	s.mu.Unlock()
	faults := all.faults[:testbedtest.Size(cmp.Or(all.usual, 1), len(all.faults))]
	began, gaps := make([]time.Time, len(faults)), make([][]time.Duration, len(faults))
	for i, f := range faults {
		began[i], gaps[i] = s.endures(t, all, f)
	}
	s.stop()
	if s.slowest > mostWait+s.stalls.total() {
		t.Errorf("a response took %v", s.slowest)
	}
	var lost []receipt
	for _, n := range all.nodes {
		awaitExpiry(t, n)
		if lost = s.holds(t, n, all.databases[0]); len(lost) > 0 != all.loses {
			t.Errorf("%d acknowledged orders are lost: %v", len(lost), lost[:min(3, len(lost))])
		}
	}
	s.buysAllOfFew(t, lost)
	if testbedtest.Size(0, 1) == 1 {
		s.demonstrates(t, all)
	}
	for i, f := range faults {
		during := func(r receipt) bool {
			return r.at.After(began[i]) && (i+1 == len(faults) || r.at.Before(began[i+1]))
		}
		placed, gone := countIf(slices.Collect(maps.Values(s.orders)), during), countIf(lost, during)
		rows += fmt.Sprintf("| %s | %s | %d | %d | %d |", name, f.name, placed, placed-gone, gone)
		if !columns {
			gaps[i] = []time.Duration{slices.Max(gaps[i])}
		}
		for _, gap := range gaps[i] {
			rows += fmt.Sprintf(" %.1f |", gap.Seconds())
		}
		rows += "\n"
	}
	t.Log("\n" + rows)
	return rows
}

// endures has a fault happen in the middle of a sale. It returns when, and the longest time without an order of each of the SKUs.
func (s *midSale) endures(t *testing.T, all *servers, f engineFault) (began time.Time, gaps []time.Duration) {
	t.Helper()
	s.placesAll(t)
	s.scramble(t)
	began, all.promoted = time.Now(), time.Time{}
	refused := s.refusals(f.says)
	f.do()
	if f.says != "" {
		for i, in := range s.fleet {
			testbedtest.Eventually(t, in.url+" says "+f.says, func() bool { return s.refusals(f.says)[i] > refused[i] })
		}
		t.Logf("%s: each instance has said %s within %v", f.name, f.says, time.Since(began).Round(time.Millisecond))
		f.mend()
	}
	most := time.Since(began) + resumes
	s.placesAll(t)
	if at := all.promoted; !at.IsZero() {
		took, opening := s.resumed(at), s.opening(t, all.databases[0])
		if took > follows+opening+s.stalls.total() {
			t.Errorf("%s: a SKU was not sold for %v after the promotion, want %v at most", f.name, took, follows+opening)
		}
		t.Logf("%s: each SKU was sold again %v after the promotion; the connections of all instances open in %v", f.name,
			took.Round(time.Millisecond), opening.Round(time.Millisecond))
	}
	if longest := slices.Max(s.gaps(began)); longest > most+s.stalls.total() {
		t.Errorf("%s: a SKU was not sold for %v, want %v at most", f.name, longest, most)
	}
	if f.mend != nil && f.says == "" {
		since := time.Now()
		f.mend()
		took := time.Since(since)
		s.placesAll(t)
		longest := slices.Max(s.gaps(since))
		if longest > mends+s.stalls.total() {
			t.Errorf("%s: a SKU was not sold for %v while a server came back, want %v at most", f.name, longest, mends)
		}
		t.Logf("%s: the server was back after %v; each SKU was sold within %v meanwhile", f.name, took.Round(time.Millisecond), longest.Round(time.Millisecond))
	}
	s.awaitSoldOut(t)
	t.Logf("%s: the few units of all SKUs were sold out %v after it began", f.name, time.Since(began).Round(time.Millisecond))
	return began, s.gaps(began)
}

// countIf returns how many of all match.
func countIf[T any](all []T, match func(T) bool) (n int) {
	for _, each := range all {
		if match(each) {
			n++
		}
	}
	return n
}

// writeFaults writes a page of results, if all of its rows are there.
func writeFaults(t *testing.T, name, head string, rows []string) {
	t.Helper()
	if slices.Contains(rows, "") {
		return
	}
	must(t, os.WriteFile("../../docs/benchmarks/results/"+name+".md", []byte(head+strings.Join(rows, "")), 0o600))
}

// enginesHead begins the page of the engines.
var enginesHead = `# Engines, strategies and faults

## How to read it

Three instances sell by eight strategies while servers of the database fail and are mended. Each row has the orders that were acknowledged from the
fault until the next one, those that are stored, and those that are lost. A row exists only if no order is doubled, no SKU is oversold, each limit per customer
holds, and each unpaid order expires once. At the end ` + "`shop demo`" + ` sells at three instances: the baseline oversells, and no other strategy does. The columns of the strategies have the longest time without an order, in seconds.

All servers and buyers share one machine with two processors. The engines are those of Debian 12, unless the row has a version. ` +
	"`make engines`" + ` writes the page
([TestSaleOnThreeServers](../../../internal/e2e/engines_test.go)). Before, it runs the suites of orders, timers, locks and members that are kept in SQL on
MySQL 9, MariaDB 11.8, PostgreSQL 17 and a node of Galera. Other pages have [Vitess](vitess.md), and [sales through faults of Redis, ZooKeeper and etcd](services.md).

| engine | fault | acknowledged | stored | lost | ` + strings.Join(exact, " | ") + ` |
|---|---|--:|--:|--:|` + strings.Repeat("--:|", len(exact)) + `
`

// openShop starts three instances at once on an empty database. A doctor of each finds nothing that fails.
func openShop(t *testing.T, all *servers, flags ...string) []*instance {
	t.Helper()
	if all.flags[0] == nil {
		redis := []string{"--redis", ownRedis(t)}
		all.flags = [3][]string{redis, redis, redis}
	}
	fleet := make([]*instance, len(all.databases))
	for i, database := range all.databases {
		fleet[i] = begin(t, slices.Concat([]string{"--instance", fmt.Sprint("shop-", i+1), "--database", database}, all.flags[i], flags)...)
	}
	for _, in := range fleet {
		in.listens(t)
	}
	for i, database := range all.databases {
		doctor := append([]string{"doctor", "--database", database}, all.flags[i]...)
		if code, out, stderr := command(t, doctor...); code != 0 {
			t.Errorf("%q exits with %d:\n%s%s", doctor, code, out, stderr)
		}
	}
	return fleet
}

// awaitExpiry waits until no order is open.
func awaitExpiry(t *testing.T, server string) {
	t.Helper()
	db := testbedtest.OpenSQL(t, server)
	testbedtest.Eventually(t, "all unpaid orders have expired", func() bool {
		open := -1
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE status = 'PENDING'").Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
}

// serversOf lists all nodes to each instance, each time beginning with another one.
func serversOf[S interface {
	Addr() string
	URL() string
}](user string, nodes []S) *servers {
	all := &servers{}
	for i, node := range nodes {
		all.nodes = append(all.nodes, node.URL())
		var hosts []string
		for _, n := range slices.Concat(nodes[i:], nodes[:i]) {
			hosts = append(hosts, n.Addr())
		}
		all.databases[i] = user + strings.Join(hosts, ",") + "/" + testbed.DefaultDatabase
	}
	return all
}

// startOne returns a server as the database of all instances.
func startOne(t *testing.T, server interface {
	URL() string
	Kill() error
	Restart(ctx context.Context) error
	Pause() error
	Resume() error
},
) *servers {
	t.Helper()
	url := server.URL()
	return &servers{nodes: []string{url}, databases: [3]string{url, url, url}, faults: []engineFault{
		{"server killed, starts again", func() {
			must(t, server.Kill())
			must(t, server.Restart(t.Context()))
		}, "", nil},
		{"server paused for 5 s", func() {
			must(t, server.Pause())
			<-time.After(5 * time.Second)
			must(t, server.Resume())
		}, "", nil},
	}}
}

func startOneMariaDB(name string) func(*testing.T) *servers {
	return func(t *testing.T) *servers {
		t.Helper()
		return startOne(t, testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Programs: newer(t, name)}))
	}
}

func startOnePostgres(t *testing.T) *servers {
	t.Helper()
	return startOne(t, testbedtest.StartPostgres(t, testbed.PostgresConfig{Programs: newer(t, "postgresql-17")}))
}

// newer returns the folder of a server that tools/newer-servers.sh unpacks.
func newer(t *testing.T, name string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "../../tools/newer-servers.sh", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	folder, err := filepath.Abs("../../.bin/servers/" + name)
	must(t, err)
	return folder
}
