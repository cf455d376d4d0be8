package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestSwitchOverInMidSale switches the database over and back by the statements of docs/how-to/switch-the-database.md, with
// connections to the old server left open. Orders of each SKU are placed again within 3 s, and those that were acknowledged
// are all there. Then one host is down, for the instance that runs and for another one that starts.
func TestSwitchOverInMidSale(t *testing.T) {
	t.Parallel()
	a, b := testbedtest.StartReplicated(t)
	database := fmt.Sprintf("mysql://seller:secret@%s,%s/%s", a.Addr(), b.Addr(), testbed.DefaultDatabase)
	in := start(t, "--database", database)
	s := newMidSale(t, in, "conditional", "for-update", "sql", "sql-cohort")
	for _, servers := range [][2]*testbed.MariaDB{{a, b}, {b, a}} {
		s.placesAll(t)
		promoted := switchOver(t, servers[0], servers[1])
		s.placesAll(t)
		took := s.resumed(promoted)
		if took > 3*time.Second && s.stalls.total() == 0 {
			t.Errorf("a SKU was sold again %v after the switch-over", took)
		}
		t.Logf("each SKU was sold again %v after the switch-over", took.Round(time.Millisecond))
	}
	s.stop()
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	s.holds(t, a, database)
	for _, database := range []string{database, fmt.Sprintf("mysql://seller:secret@%s,%s/%s", b.Addr(), a.Addr(), testbed.DefaultDatabase)} {
		buyer := start(t, "--database", database, "--instance", "later")
		buyer.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"conditional"`, 1))
	}
	in.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"conditional"`, 1))
}

// midSale is a sale of a SKU for each of some strategies, which have its name.
type midSale struct {
	skus   []string
	stalls *stallDetector
	stop   func()

	mu     sync.Mutex
	placed map[string][]time.Time // by SKU
	ids    []string
	odd    string
}

// newMidSale begins a sale with two buyers of each SKU.
func newMidSale(t *testing.T, in *instance, skus ...string) *midSale {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &midSale{skus: skus, stalls: detectStalls(t), placed: make(map[string][]time.Time)}
	var buyers sync.WaitGroup
	client := customers(t)
	for _, sku := range skus {
		in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, fmt.Sprintf(`{"on_hand":1000000,"strategy":%q}`, sku))
		for range 2 {
			buyers.Go(func() {
				for ctx.Err() == nil {
					s.record(sku, served(context.WithoutCancel(ctx), client, in.url, sku))
				}
			})
		}
	}
	s.stop = func() {
		cancel()
		buyers.Wait()
	}
	t.Cleanup(s.stop)
	return s
}

func (s *midSale) record(sku string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(a.body)
	if a.status != http.StatusCreated || id == nil {
		s.odd = a.String()
		return
	}
	s.placed[sku] = append(s.placed[sku], time.Now())
	s.ids = append(s.ids, id[1])
}

// placesAll waits until ten more orders of each SKU are placed.
func (s *midSale) placesAll(t *testing.T) {
	t.Helper()
	count := func(sku string) int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.placed[sku])
	}
	for _, sku := range s.skus {
		before := count(sku)
		testbedtest.Eventually(t, "ten orders of "+sku, func() bool { return count(sku) >= before+10 })
	}
}

// resumed returns how long after a moment the last of the SKUs was sold.
func (s *midSale) resumed(after time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range s.skus {
		i, _ := slices.BinarySearchFunc(s.placed[sku], after, time.Time.Compare)
		longest = max(longest, s.placed[sku][i].Sub(after))
	}
	return longest
}

// holds checks that each acknowledged order is stored at a server, and that the audit finds no broken invariant.
func (s *midSale) holds(t *testing.T, m *testbed.MariaDB, database string) {
	t.Helper()
	if s.odd != "" {
		t.Error(s.odd)
	}
	var stored int
	for ids := range slices.Chunk(s.ids, 100) {
		n, query := 0, "SELECT COUNT(*) FROM orders WHERE id IN ('"+strings.Join(ids, "', '")+"')"
		if err := testbedtest.OpenSQL(t, m.URL()).QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		stored += n
	}
	if stored != len(s.ids) {
		t.Errorf("%d orders were acknowledged, %d of them are stored", len(s.ids), stored)
	}
	t.Logf("%d orders", stored)
	if code, out, stderr := call(t, noEnv, "audit", "--database", database); code != 0 {
		t.Errorf("audit: exit code %d: %s%s", code, out, stderr)
	}
}

// switchOver executes the page. It returns when the new server has begun to accept writes.
func switchOver(t *testing.T, old, successor *testbed.MariaDB) (promoted time.Time) {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/switch-the-database.md")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(successor.Addr())
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("(?m)^\\| \\d \\| (old|new) \\| `([^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(steps) != 9 {
		t.Fatalf("the page has %d steps", len(steps))
	}
	position := ""
	for _, step := range steps {
		server := old
		if step[1] == "new" {
			server = successor
		}
		statement := strings.NewReplacer("'POSITION'", "'"+position+"'", "'HOST'", "'"+host+"'", "=PORT", "="+port, "'USER'", "'root'", "'PASSWORD'", "''").Replace(step[2])
		db := testbedtest.OpenSQL(t, server.URL())
		switch failed := 0; {
		case strings.Contains(statement, "gtid_binlog_pos"):
			err = db.QueryRowContext(t.Context(), statement).Scan(&position)
		case strings.HasPrefix(statement, "SELECT"):
			if err = db.QueryRowContext(t.Context(), statement).Scan(&failed); failed != 0 {
				t.Fatalf("%s: %d", statement, failed)
			}
		default:
			_, err = db.ExecContext(t.Context(), statement)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if strings.Contains(statement, "read_only = 0") {
			promoted = time.Now()
		}
	}
	return promoted
}
