package e2e_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// faultsPage is the table that `make soak` writes.
const faultsPage = "../../docs/benchmarks/results/faults.md"

// noise is what a machine that is busy adds to a price.
const noise = time.Second

// lease is what a dead or paused instance may cost, whatever its leases are.
const lease = 2500 * time.Millisecond

// needsRedis are the strategies that sell nothing while Redis does not answer.
var needsRedis = []string{"redis-unfenced", "redis", "redis-cohort", "lua"}

// An instance that is killed or paused costs a lease at most. Faults of Redis cost nothing where Redis is not needed.
// `make soak` measures all strategies, and writes the table.
func TestPriceOfAFault(t *testing.T) {
	measured(t)
	strategies, rounds, lasts := []string{"conditional", "redis"}, 1, 6*time.Second
	soak := testbedtest.Size(0, 1) == 1
	if soak {
		strategies, rounds, lasts = stock.NewStrategies(stock.Lockers{}).Names(), 5, 4*time.Second
	}
	slack := noise * time.Duration(testbedtest.Size(2, 1)) // the usual run shares the machine with other tests
	s := newPriced(t, strategies)
	after := func(name string) string { return fmt.Sprintf(name, lasts) }
	faults := []fault{
		{"instance killed (kill -9)", lease, func() { s.instance(0).kill() }, func() { s.start(0) }},
		{after("Redis paused for %v"), lasts, func() { must(t, s.redis.Pause()) }, func() { must(t, s.redis.Resume()) }},
		{after("instance paused for %v"), lasts, func() { s.signal(syscall.SIGSTOP) }, func() { s.signal(syscall.SIGCONT) }},
		{after("Redis killed, back after %v"), lasts, func() { must(t, s.redis.Kill()) }, func() { must(t, s.redis.Restart(t.Context())) }},
	}
	if !soak {
		faults = faults[:2]
	}
	table := prices{faults: faults, strategies: strategies, by: map[string][]time.Duration{}}
	stalls := detectStalls(t)
	for some := range slices.Chunk(strategies, 6) {
		stop := s.sell(some)
		for i, f := range faults {
			stood := make([]time.Duration, 0, rounds)
			for range rounds {
				before := stalls.total()
				for strategy, d := range s.price(some, f) {
					table.add(f.name, strategy, d)
				}
				stood = append(stood, stalls.total()-before)
			}
			for _, strategy := range some {
				d, most, percent := slices.Clone(table.by[f.name+strategy]), lease+slack, 100
				switch ofRedis := i%2 == 1; {
				case ofRedis && slices.Contains(needsRedis, strategy):
					most = f.lasts + lease + slack
				case ofRedis:
					most = 2 * slack
				case i == 2: // a statement of the paused instance that waited for the row has it next, for 2 s more
					percent = 50
				}
				if most += slices.Max(stood); quantile(d, percent) > most {
					t.Errorf("%s: %s: no order for %v, want %v at most", f.name, strategy, d, most)
				}
			}
		}
		stop()
	}
	if soak {
		behindBalancer(t, s, &table, rounds, lasts)
	}
	t.Log("\n" + table.String())
	if soak {
		must(t, os.WriteFile(faultsPage, []byte(table.String()), 0o600))
	}
}

// behindBalancer adds what an instance costs that is paused behind the balancer. It may have the leases of all SKUs of a
// strategy, or their rows in an idle transaction, which ends after 2 s too.
func behindBalancer(t *testing.T, s *priced, table *prices, rounds int, lasts time.Duration) {
	t.Helper()
	url, stalls := balance(t, s.instance(0).url, s.instance(1).url), detectStalls(t)
	f := fault{fmt.Sprintf("instance paused for %v behind the balancer", lasts), lasts, func() { s.signal(syscall.SIGSTOP) }, func() { s.signal(syscall.SIGCONT) }}
	table.faults = append(table.faults, f)
	for some := range slices.Chunk(table.strategies, 6) {
		stop := s.sellThrough(url, some)
		for range rounds {
			before := stalls.total()
			for strategy, d := range s.price(some, f) {
				table.add(f.name, strategy, d)
				if most := lease + noise + stalls.total() - before; d > most {
					t.Errorf("%s: %s: no order for %v, want %v at most", f.name, strategy, d, most)
				}
			}
		}
		stop()
	}
}

// prices are what faults have cost.
type prices struct {
	faults     []fault
	strategies []string
	by         map[string][]time.Duration
}

func (p *prices) add(fault, strategy string, d time.Duration) {
	p.by[fault+strategy] = append(p.by[fault+strategy], d)
}

// String returns the page.
func (p *prices) String() string {
	var page strings.Builder
	rounds := len(p.by[p.faults[0].name+p.strategies[0]])
	fmt.Fprintf(&page, `# The price of a fault

## How to read it

The price of a fault is the longest time without a placed order of a SKU, from the fault until orders are placed again
after its end. The table has the median and the maximum of %d faults in seconds. `, rounds)
	page.WriteString("`make soak` writes it ([TestPriceOfAFault](../../../internal/e2e/failover_price_test.go)).\n")
	fmt.Fprintf(&page, `
Two instances sell up to six SKUs, each by another strategy. Each SKU has two buyers at each instance, who order without a pause.
Behind the balancer each of the four buyers of a strategy has a SKU of its own. All servers and buyers share %d processors, so
differences of 0.3 s are noise. The server ends an idle transaction after 2 s. An instance that is paused behind the balancer costs
that much if its transaction has locked the rows of all four SKUs, or if it has all four leases. If a statement of a paused instance
waits for the same row, that statement gets the row then, for 2 s more. ZooKeeper has the tick of [the deployment](../../../deployments/zoo.cfg).

`, runtime.NumCPU())
	page.WriteString("| strategy |")
	for _, f := range p.faults {
		fmt.Fprintf(&page, " %s |", f.name)
	}
	page.WriteString("\n|---|" + strings.Repeat("---|", len(p.faults)) + "\n")
	for _, strategy := range p.strategies {
		fmt.Fprintf(&page, "| %s |", strategy)
		for _, f := range p.faults {
			d := p.by[f.name+strategy]
			fmt.Fprintf(&page, " %.1f / %.1f |", quantile(d, 50).Seconds(), quantile(d, 100).Seconds())
		}
		page.WriteString("\n")
	}
	return page.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
