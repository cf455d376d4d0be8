package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/platform/testbed"
)

const (
	heatProcesses = 3
	heatBuyers    = 8 // of a process
)

// heatKinds are the strategies of the lab, by what they are called elsewhere.
var heatKinds = []struct{ kind, strategy string }{
	{"optimistic", "optimistic"}, {"pessimistic", "for-update"}, {"conditional", "conditional"}, {"batch", "redis-cohort"},
}

func runHeat(ctx context.Context, r *Run) {
	s := r.openDatabase(ctx)
	e := &heatRun{stores: s, picture: &Picture{
		Title: fmt.Sprintf("orders per second of %d buyers in %d processes: one hot SKU, and a SKU for each buyer", heatProcesses*heatBuyers, heatProcesses), Unit: "orders/s", Legend: Legend{Neutral: "a SKU for each buyer", Waits: "one hot SKU"},
	}}
	r.Draw(e.picture)
	for i := range heatProcesses {
		name := fmt.Sprintf("process %c", 'A'+i)
		e.processes = append(e.processes, r.Start(ctx, name, s.task("name", name, "number", strconv.Itoa(i),
			"orders", strconv.Itoa(r.Size(3, 20)), "sales", strings.Join(heatSales(), ","))))
	}
	e.orders = heatProcesses * heatBuyers * r.Size(3, 20)
	results := make(map[string]heatSale)
	for _, sale := range heatSales() {
		results[sale] = e.sell(ctx, sale)
	}
	e.judge(results)
}

// judge judges what can be counted. Orders per second depend on the machine, and are shown only.
func (e *heatRun) judge(results map[string]heatSale) {
	others := 0
	for _, k := range heatKinds {
		hot, many := results[k.strategy+":hot"], results[k.strategy+":many"]
		e.r.Cure(hot.exact && many.exact, "%s: %d orders of one SKU and %d of many, each stored once, and columns, ledger and orders agree", k.kind, hot.accepted, many.accepted)
		if k.strategy != "optimistic" {
			others += hot.repeated + many.repeated
			continue
		}
		e.r.Effect(hot.repeated > 0, "optimistic, one hot SKU: %d orders needed %d more attempts", hot.accepted, hot.repeated)
		e.r.Effect(many.repeated == 0, "optimistic, a SKU for each buyer: %d orders needed %d more attempts", many.accepted, many.repeated)
	}
	e.r.Effect(others == 0, "the other strategies, hot or not: %d more attempts", others)
}

// heatSales are the sales of the lab, in their order: a strategy, and how the buyers are spread.
// The first one is not measured: processes open their connections in it.
func heatSales() (names []string) {
	names = append(names, "conditional:warm")
	for _, k := range heatKinds {
		names = append(names, k.strategy+":many", k.strategy+":hot")
	}
	return names
}

// heatRun is one run of the lab.
type heatRun struct {
	*stores

	processes []*Process
	orders    int // of a sale
	picture   *Picture
}

// heatSale is what one sale came to.
type heatSale struct {
	accepted, repeated int
	exact              bool
}

// openDatabase is open with a MariaDB server, if it is installed: SQLite has one writer, whatever is sold.
func (r *Run) openDatabase(ctx context.Context) *stores {
	server, err := testbed.StartMariaDB(ctx, testbed.MariaDBConfig{})
	if errors.Is(err, testbed.ErrNotInstalled) {
		r.Step("MariaDB is not installed: SQLite has one writer at a time, so many SKUs are no faster than one")
		return r.open(ctx)
	}
	check(err)
	r.Defer(server.Close)
	return r.openOn(ctx, server.URL(), "a MariaDB server")
}

// sell holds one sale in all processes.
func (e *heatRun) sell(ctx context.Context, sale string) (result heatSale) {
	strategy, heat, _ := strings.Cut(sale, ":")
	skus := heatSKUs(strategy, heat)
	for _, sku := range skus {
		e.stock(ctx, sku, strategy, e.orders/len(skus))
	}
	for _, p := range e.processes {
		p.Until(ctx, pointReady)
	}
	began := time.Now()
	for _, p := range e.processes {
		p.Continue()
	}
	for _, p := range e.processes {
		done := p.Until(ctx, pointDone)
		var accepted, repeated int
		must(fmt.Sscan(done.Value, &accepted, &repeated))
		result.accepted += accepted
		result.repeated += repeated
	}
	rate := float64(e.orders) / time.Since(began).Seconds()
	result.exact = e.exact(ctx, skus, result.accepted)
	if heat == "warm" {
		return result
	}
	name := heatName(strategy, heat)
	e.r.Step("%s: %d orders accepted at %.0f orders/s, and %d attempts repeated after a version conflict", name, result.accepted, rate, result.repeated)
	e.r.Measure(name, rate, "orders/s")
	e.r.Measure("attempts repeated: "+name, float64(result.repeated), "attempts")
	kind := Neutral
	if heat == "hot" {
		kind = Waits
	}
	e.picture.Bars = append(e.picture.Bars, Bar{name, rate, kind})
	return result
}

// exact reports whether all orders of a sale are stored, and columns, ledger and orders agree.
func (e *heatRun) exact(ctx context.Context, skus []string, accepted int) bool {
	sum, ok := int64(0), true
	for _, sku := range skus {
		audit := e.audit(ctx, sku)
		sum, ok = sum+audit.Accepted(), ok && audit.OK()
	}
	return ok && sum == int64(accepted) && accepted == e.orders
}

// heatSKUs are the SKUs of a sale: one, or one for each buyer.
func heatSKUs(strategy, heat string) (skus []string) {
	n := heatProcesses * heatBuyers
	if heat == "hot" {
		n = 1
	}
	for i := range n {
		skus = append(skus, fmt.Sprintf("%s-%s-%02d", strategy, heat, i))
	}
	return skus
}

func heatName(strategy, heat string) string {
	i := slices.IndexFunc(heatKinds, func(k struct{ kind, strategy string }) bool { return k.strategy == strategy })
	return heatKinds[i].kind + map[string]string{"hot": ", one hot SKU", "many": ", many SKUs"}[heat]
}
