package throughput

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Each client of a host looks for idle connections until it has none, up to a minute later.
func TestMain(m *testing.M) {
	testbedtest.Main(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

// An open loop counts from the time at which an order was due: a service that stalls
// once is not spared the orders that waited.
func TestOpenLoopCountsFromWhenOrdersWereDue(t *testing.T) {
	t.Parallel()
	const stall = 500 * time.Millisecond
	begun := time.Now()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(stall - time.Since(begun))
		w.WriteHeader(http.StatusCreated)
	}))
	defer service.Close()
	p50 := func(rate int) time.Duration {
		begun = time.Now()
		b, err := newBuyers([]string{service.URL}, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		b.skus, b.rate, b.limit = []string{"a"}, rate, 200
		tally := b.run(t.Context(), begun)
		if tally.placed != 200 || tally.failed > 0 {
			t.Errorf("%+v", tally)
		}
		return time.Duration(tally.latencies.ValueAtQuantile(50)) * time.Microsecond
	}
	closed := p50(0)
	if open := p50(400); open < stall/3 || closed > open/2 {
		t.Errorf("half of the orders took less than %v, and %v in a closed loop; the service was paused for %v", open, closed, stall)
	}
}

// Buyers buy all SKUs in turn, or one each, at their instance.
func TestBuyersWithTheirOwnSKU(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		var mu sync.Mutex
		sold := map[string]map[string]bool{} // instances by SKU
		var urls []string
		for _, name := range []string{"one", "two"} {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body struct{ Items []struct{ SKU string } }
				err := json.NewDecoder(r.Body).Decode(&body)
				if err != nil || len(body.Items) != 1 {
					t.Errorf("%+v, %v", body, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				sku := body.Items[0].SKU
				if sold[sku] == nil {
					sold[sku] = map[string]bool{}
				}
				sold[sku][name] = true
				w.WriteHeader(http.StatusCreated)
			}))
			defer service.Close()
			urls = append(urls, service.URL)
		}
		b, err := newBuyers(urls, 4)
		if err != nil {
			t.Fatal(err)
		}
		b.skus, b.own = []string{"a", "b", "c", "d"}, own
		enough, stop := context.WithTimeout(t.Context(), time.Minute)
		shared := func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, at := range sold {
				n += len(at)
			}
			return len(sold) == 4 && (own || n > 4)
		}
		for enough.Err() == nil && !shared() {
			b.limit = 100
			b.run(enough, time.Now())
		}
		stop()
		b.Close()
		if !shared() {
			t.Errorf("own %v: %v", own, sold)
		}
		for sku, at := range sold {
			if own && len(at) != 1 {
				t.Errorf("%s was sold by %v", sku, at)
			}
		}
	}
}

// A refusal is tried again until the order is placed; a failure is notified.
func TestBuyersRetry(t *testing.T) {
	t.Parallel()
	asked := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader([]int{429, 503, 201, 409, 418}[(asked-1)%5])
	}))
	defer service.Close()
	b, err := newBuyers([]string{service.URL}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.skus, b.limit = []string{"a"}, 3
	got := b.run(t.Context(), time.Now())
	if got.placed != 1 || got.refused != 2 || got.soldOut != 1 || got.failed != 1 || !strings.Contains(got.firstError, "418") {
		t.Errorf("%+v", got)
	}
}

func TestSummaryAndPage(t *testing.T) {
	t.Parallel()
	variant := func(name string, ok bool, perSecond ...float64) *Variant {
		a := &Variant{Strategy: name, AuditOK: ok, Placed: 1}
		for _, x := range perSecond {
			a.Rounds = append(a.Rounds, Round{OrdersPerSecond: x, P50: 1000 / x, cpu: map[string]float64{"shop": 1 / x}})
		}
		return a
	}
	variants := []*Variant{variant("naive", false, 100, 200, 50), variant("conditional", true, 200, 200, 200), variant("redis", true, 300, 400, 200)}
	summarize(variants)
	if a := variants[2]; a.OrdersPerSecond != 300 || a.ToNaive != 3 || a.ToConditional != 1.5 {
		t.Errorf("%+v", a)
	}
	r := Report{Variants: []Variant{*variants[0], *variants[1], *variants[2]}, Limits: Limits{Commits: 1000, Rows: 10_000, Requests: 50_000}}
	page := r.Markdown()
	for _, want := range []string{"| redis | 300 | 3 | 1.5 |", "| commits of one row | 1,000 | 10.0% | 20.0% | 30.0% |"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	svg, err := r.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil || strings.Count(svg, "invariants violated") != 2 {
		t.Errorf("%v\n%s", err, svg)
	}
	if r.OK() != true {
		t.Error("naive may be wrong")
	}
	r.Variants[2].AuditOK = false
	if r.OK() {
		t.Error("redis may not be wrong")
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		`no strategy "x"`:         {Strategies: []string{"x"}},
		`"naive" is named twice`:  {Strategies: []string{"naive", "naive"}},
		`no store "y"`:            {Stores: []string{"mariadb", "redis", "y"}},
		"one database":            {Stores: []string{"redis"}},
		"redis is missing":        {Stores: []string{"sqlite"}},
		"--connections 2: want 3": {Connections: 2},
		"--rate -1":               {Rate: -1},
		"--duration 1ms":          {Duration: time.Millisecond},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// The time of the machine has that of a process that is no part of the run.
func TestTimeOfTheMachineHasThatOfOthers(t *testing.T) {
	t.Parallel()
	if machineTime() == 0 {
		t.Skip("the system does not report it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	before := machineTime()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	const enough = 300 * time.Millisecond
	for processorTime(other.Process.Pid) < enough && ctx.Err() == nil {
		time.Sleep(clockTick)
	}
	if used := machineTime() - before; used < enough*9/10 { // both are counted in ticks
		t.Errorf("the machine worked for %v, and one of its processes for %v", used, enough)
	}
	cancel()
	_ = other.Wait()
}
