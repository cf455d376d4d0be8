package orderpath_test

import (
	"crypto/rand"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

var (
	update = flag.Bool("update", false, "write the table of docs/architecture.md")
	paths  = flag.String("paths", "", "write the functions of each path to this folder")
)

// groups are the strategies that one instance sells by, with the stores that they need besides MariaDB and Redis.
var groups = []struct {
	strategies []string
	flags      func(*testing.T) []string
}{
	{[]string{"naive", "local", "conditional"}, nil},
	{[]string{"optimistic", "for-update", "lua"}, nil},
	{[]string{"redis-unfenced", "redis", "redis-cohort"}, nil},
	{[]string{"redlock", "redlock-cohort"}, redlock},
	{[]string{"zookeeper", "zookeeper-cohort"}, zooKeeper},
	{[]string{"etcd", "etcd-cohort"}, etcd},
	{[]string{"sql", "sql-cohort"}, nil},
}

func redlock(t *testing.T) []string {
	t.Helper()
	var urls []string
	for range 3 {
		urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
	}
	return []string{"--redlock", strings.Join(urls, ",")}
}

func zooKeeper(t *testing.T) []string {
	t.Helper()
	return []string{"--zookeeper", testbedtest.ZooKeeper(t)}
}

func etcd(t *testing.T) []string {
	t.Helper()
	return []string{"--etcd", testbedtest.Etcd(t)}
}

// measured has the figures of a strategy.
type measured struct{ figures, bounds figures }

// results has what was measured, by strategy.
type results struct {
	sync.Mutex

	of map[string]measured
}

func (r *results) add(strategy string, m measured) {
	r.Lock()
	defer r.Unlock()
	r.of[strategy] = m
}

// The path of one order is no longer than the table of docs/architecture.md says, for each strategy. Coverage counters are cleared before an order, and
// read after it. The instance is warm and has no other work. `make order-path` writes the table.
func TestPathOfAnOrder(t *testing.T) {
	testbedtest.Redis(t) // or the test is skipped before it builds
	program := build(t)
	all := results{of: make(map[string]measured)}
	t.Run("group", func(t *testing.T) {
		for _, g := range groups {
			t.Run(g.strategies[0], func(t *testing.T) {
				t.Parallel()
				flags := []string{"--redis", testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()}
				if g.flags != nil {
					flags = append(flags, g.flags(t)...)
				}
				in := start(t, program, testbedtest.Database(t), flags...)
				in.sell(t, g.strategies, &all)
			})
		}
	})
	if t.Failed() {
		return
	}
	if *update {
		writeTable(t, all.of)
	}
	checkTable(t, all.of)
}

// sell measures the strategies.
func (in *instance) sell(t *testing.T, strategies []string, all *results) {
	t.Helper()
	for _, sku := range strategies {
		in.create(t, sku)
		for range 3 { // these fill caches and pools
			in.order(t, sku)
		}
	}
	idle := in.idle(t)
	s := newSources(t)
	for _, sku := range strategies {
		sale := in.measure(t, sku)
		for range 4 { // on a busy machine, work of others can be in each window of the sale, and in none of the idle instance
			path, _ := sale.certain(idle)
			beyond := s.figuresOf(t, path).beyond(readTable(t)[sku])
			if len(beyond) == 0 || *update {
				break
			}
			t.Logf("%s: measured again: %s", sku, strings.Join(beyond, ", "))
			maps.Copy(idle, in.idle(t))
			sale = in.measure(t, sku)
		}
		enters := in.entered(t, sku)
		most := sale.bounding(idle)
		path, subtracted := sale.certain(idle)
		m := measured{figures: s.figuresOf(t, path), bounds: s.figuresOf(t, most)}
		m.figures.entered, m.bounds.entered = enters, enters
		all.add(sku, m)
		on := s.functionsOf(t, path)
		t.Logf("%s: %+v\nsubtracted, because the idle instance runs it:%s\nnot on the path, because few orders ran it:%s", sku, m.figures,
			list(missing(s.functionsOf(t, subtracted), on)), list(missing(s.functionsOf(t, often(sale.followed, 1)), s.functionsOf(t, often(sale.followed, len(sale.followed)-1)))))
		if *paths != "" {
			if err := os.WriteFile(filepath.Join(*paths, sku), []byte(list(on)[1:]+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// missing returns the functions of all that are not in some.
func missing(all, some []function) []function {
	return slices.DeleteFunc(all, func(f function) bool { return slices.Contains(some, f) })
}

// create puts a SKU of the strategy with its name on sale.
func (in *instance) create(t *testing.T, sku string) {
	t.Helper()
	if problem := in.send(t, "PUT", "/api/v1/skus/"+sku, "", `{"on_hand":1000,"strategy":"`+sku+`"}`); problem != "" {
		t.Fatal(problem)
	}
}

// order places an order of one unit with an idempotency key.
func (in *instance) order(t *testing.T, sku string) {
	t.Helper()
	if problem := in.insist(t, sku); problem != "" {
		t.Fatal(problem)
	}
}

// insist is place until the instance has permits, which may come too late on a busy machine.
func (in *instance) insist(t *testing.T, sku string) (problem string) {
	t.Helper()
	for range orders {
		if problem = in.place(t, sku); !strings.Contains(problem, "status 429") {
			break
		}
		time.Sleep(settles)
	}
	return problem
}

// place is order for any goroutine. It returns what went wrong.
func (in *instance) place(t *testing.T, sku string) (problem string) {
	t.Helper()
	return in.send(t, "POST", "/api/v1/orders", rand.Text(), `{"customer_id":"c1","items":[{"sku":"`+sku+`","quantity":1}]}`)
}
