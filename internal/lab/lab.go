package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/fleet"
	"example.com/shop/internal/sqlstore"
)

const (
	startTimeout = time.Minute
	plenty       = 1_000_000_000 // units that no turn can sell
	few          = 200           // units of the turn that sells out
	demand       = 4             // attempts for each of them
	most         = 96            // buyers of that turn: more only keep a lock that is polled from being had
	orderTTL     = "24h"         // so that nothing expires meanwhile
	offering     = 8             // SKUs that are made at the same time
)

// Throughput measures every variant. It returns an error when it could not; what the books
// say of the variants is in the report.
func Throughput(ctx context.Context, c Config) (r Report, err error) {
	if err := c.Validate(); err != nil {
		return r, err
	}
	l, err := open(ctx, c.withDefaults())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if !c.NoLimits {
		if r.Limits, err = l.limits(ctx); err != nil {
			return r, err
		}
	}
	if err := l.fill(ctx); err != nil {
		return r, err
	}
	l.turns, l.began = l.Rounds*len(l.variants), time.Now()
	l.say("%d strategies, %d rounds: %d turns of %v, about %v, and then the audits", len(l.variants), l.Rounds, l.turns,
		l.WarmUp+l.Duration, time.Duration(l.turns)*(l.WarmUp+l.Duration))
	for n := range l.Rounds {
		for i := range l.variants {
			a := l.variants[(i+n)%len(l.variants)]
			if err := l.turn(ctx, a, n); err != nil {
				return r, fmt.Errorf("%s, round %d: %w", a.Strategy, n+1, err)
			}
		}
	}
	variants := make([]*Variant, len(l.variants))
	for i, a := range l.variants {
		if err := l.books(ctx, a); err != nil {
			return r, fmt.Errorf("%s: %w", a.Strategy, err)
		}
		variants[i] = &a.Variant
	}
	summarize(variants)
	for _, a := range variants {
		r.Variants = append(r.Variants, *a)
	}
	if r.Machine, err = l.machine(ctx); err != nil {
		return r, err
	}
	r.Load = Load{
		Stores: l.Stores, Instances: l.Instances, Connections: l.Connections, SKUs: l.SKUs, Catalog: l.Catalog, Open: l.Open, Keys: l.Keys, Own: l.Own,
		Rounds: l.Rounds, Seconds: l.Duration.Seconds(), Rate: l.Rate,
	}
	return r, nil
}

// lab is a run under way.
type lab struct {
	Config
	stores   *stores
	meter    *meter
	store    *sqlstore.Store
	fleets   []*fleet.Fleet
	variants []*variant
	run      string // tells the SKUs of this run
	client   *http.Client

	turns, taken int
	began        time.Time // when the first turn began
}

// left returns how long the turns that are left will take, if they take as long as those before.
func (l *lab) left() time.Duration {
	return (time.Since(l.began) / time.Duration(l.taken) * time.Duration(l.turns-l.taken)).Round(time.Second)
}

// variant is a strategy and where it sells.
type variant struct {
	Variant
	strategy string
	urls     []string
	buyers   *buyers
	skus     []string // of all turns
}

func open(ctx context.Context, c Config) (l *lab, err error) {
	l = &lab{Config: c, run: strings.ToLower(rand.Text()[:8]), client: &http.Client{Timeout: startTimeout}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	l.say("starting %s", strings.Join(c.Stores, ", "))
	if l.stores, err = startStores(ctx, c.Stores); err != nil {
		return l, err
	}
	pids := map[string][]int{"load": {os.Getpid()}}
	for kind, pid := range l.stores.pids {
		pids[kind] = []int{pid}
	}
	own, err := l.start(ctx, c.Executable, nil, pids)
	if err != nil {
		return l, err
	}
	if l.Strategies, err = l.choose(ctx, own[0]); err != nil {
		return l, err
	}
	for _, s := range l.Strategies {
		if err := l.add(s, s, own); err != nil {
			return l, err
		}
	}
	for _, p := range c.Peers {
		urls, err := l.start(ctx, p.Executable, p.Args, pids)
		if err == nil {
			err = l.add(p.Name, p.Strategy, urls)
		}
		if err != nil {
			return l, err
		}
	}
	if l.meter, err = newMeter(l.stores, pids); err != nil {
		return l, err
	}
	l.store, err = sqlstore.Open(ctx, sqlstore.Config{URL: l.stores.database, Instance: "lab", Connections: 2})
	return l, err
}

// start starts instances of a program.
func (l *lab) start(ctx context.Context, executable string, more []string, pids map[string][]int) ([]string, error) {
	args := slices.Concat(l.stores.args, []string{"--order-ttl", orderTTL, "--permits", strconv.Itoa(4 * l.Connections)}, more, l.Args)
	f, err := fleet.Start(ctx, fleet.Config{
		Executable: executable, Dir: l.stores.dir, First: 1 + l.Instances*len(l.fleets), N: l.Instances, Args: args,
	})
	if err != nil {
		return nil, err
	}
	l.fleets = append(l.fleets, f)
	for _, in := range f.Instances() {
		pids["shop"] = append(pids["shop"], in.PID())
	}
	return f.URLs(), nil
}

// add makes a variant.
func (l *lab) add(name, strategy string, urls []string) error {
	b, err := newBuyers(urls, l.Connections)
	if l.Keys {
		b.keys = l.run
	}
	b.own = l.Own
	l.variants = append(l.variants, &variant{Variant: Variant{Strategy: name}, strategy: strategy, urls: urls, buyers: b})
	return err
}

// Close ends what open has started.
func (l *lab) Close() error {
	var errs []error
	for _, a := range l.variants {
		a.buyers.Close()
	}
	l.client.CloseIdleConnections()
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if l.meter != nil {
		errs = append(errs, l.meter.Close())
	}
	for _, f := range l.fleets {
		errs = append(errs, f.Close())
	}
	if l.stores != nil {
		errs = append(errs, l.stores.Close())
	}
	return errors.Join(errs...)
}

func (l *lab) say(format string, args ...any) {
	if l.Log != nil {
		fmt.Fprintf(l.Log, format+"\n", args...)
	}
}

// ask makes one request of an instance that is no order.
func (l *lab) ask(ctx context.Context, method, url string, body, answer any) error {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, &b)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %s", method, url, resp.StatusCode, bytes.TrimSpace(text))
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

// choose returns the strategies to sell by: those that were asked for, or all whose stores
// there are.
func (l *lab) choose(ctx context.Context, url string) ([]string, error) {
	var list struct {
		Strategies []struct {
			Name      string
			Available bool
		}
	}
	if err := l.ask(ctx, http.MethodGet, url+"/api/v1/strategies", nil, &list); err != nil {
		return nil, err
	}
	var offered []string
	for _, s := range list.Strategies {
		if s.Available {
			offered = append(offered, s.Name)
		}
	}
	for _, s := range l.Strategies {
		if !slices.Contains(offered, s) {
			return nil, fmt.Errorf("--strategies: %s needs a store that is not among --stores %s", s, strings.Join(l.Stores, ","))
		}
	}
	if len(l.Strategies) > 0 {
		return l.Strategies, nil
	}
	return offered, nil
}

// offer puts new SKUs on sale.
func (l *lab) offer(ctx context.Context, a *variant, n, units int) ([]string, error) {
	skus := make([]string, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(offering)
	for i := range skus {
		skus[i] = fmt.Sprintf("lab-%s-%s-%d", a.Strategy, l.run, len(a.skus)+i)
		g.Go(func() error {
			body := map[string]any{"on_hand": units, "strategy": a.strategy}
			return l.ask(ctx, http.MethodPut, a.urls[i%len(a.urls)]+"/api/v1/skus/"+skus[i], body, nil)
		})
	}
	a.skus = append(a.skus, skus...)
	return skus, g.Wait()
}

// fill puts the SKUs on sale that nobody wants, and places the orders that are to be open
// from the beginning, both by the last strategy.
func (l *lab) fill(ctx context.Context) (err error) {
	a := l.variants[len(l.Strategies)-1]
	b := a.buyers
	if l.Catalog > 0 {
		unwanted := &variant{Variant: Variant{Strategy: "other"}, strategy: a.strategy, urls: a.urls}
		if _, err := l.offer(ctx, unwanted, l.Catalog, plenty); err != nil {
			return err
		}
		l.say("%d other SKUs are on sale", l.Catalog)
	}
	if l.Open == 0 {
		return nil
	}
	if b.skus, err = l.offer(ctx, a, l.SKUs, plenty); err != nil {
		return err
	}
	b.limit = int64(l.Open)
	start := time.Now()
	t := b.run(ctx, start)
	l.say("%d orders are open after %v", t.placed, time.Since(start).Round(time.Second))
	if t.placed != int64(l.Open) {
		return fmt.Errorf("%d of %d orders were placed in advance: %s", t.placed, l.Open, t.firstError)
	}
	return ctx.Err()
}

// turn lets one variant sell for a while.
func (l *lab) turn(ctx context.Context, a *variant, n int) (err error) {
	b := a.buyers
	if b.skus, err = l.offer(ctx, a, l.SKUs, plenty); err != nil {
		return err
	}
	b.rate, b.limit = l.Rate, 0
	from := time.Now().Add(l.WarmUp)
	sale, cancel := context.WithDeadline(ctx, from.Add(l.Duration))
	defer cancel()
	var before counters
	var reading error
	read := make(chan struct{})
	go func() {
		defer close(read)
		select {
		case <-time.After(time.Until(from)):
		case <-sale.Done():
		}
		before, reading = l.meter.read(ctx)
	}()
	t := b.run(sale, from)
	<-read
	after, err := l.meter.read(ctx)
	if err := errors.Join(ctx.Err(), reading, err); err != nil {
		return err
	}
	a.Placed += t.placed
	a.Refused += t.refused
	a.Errors += t.failed
	if a.firstError == "" {
		a.firstError = t.firstError
	}
	r := t.round(l.Duration, before, after)
	a.Rounds = append(a.Rounds, r)
	l.taken++
	l.say("round %d of %d: %-16s %8.0f orders/s  p50 %7.1f ms  p99 %7.1f ms  (turn %d of %d, %v left)", n+1, l.Rounds, a.Strategy,
		r.OrdersPerSecond, r.P50, r.P99, l.taken, l.turns, l.left())
	return nil
}

// round is what a turn of d says.
func (t *tally) round(d time.Duration, before, after counters) Round {
	at := func(q float64) float64 { return round(float64(t.latencies.ValueAtQuantile(q))/1000, 2) }
	per := func(n int64) float64 { return round(float64(n)/float64(t.placed), 3) }
	r := Round{
		OrdersPerSecond: round(float64(t.placed)/d.Seconds(), 1), P50: at(50), P99: at(99), P999: at(99.9),
		sql: per(after.sql - before.sql), commits: per(after.commits - before.commits), redis: per(after.redis - before.redis),
		cpu: map[string]float64{},
	}
	for kind, used := range after.cpu {
		r.cpu[kind] = round((used-before.cpu[kind]).Seconds()*1000/float64(t.placed), 4)
	}
	return r
}

// books sells a SKU out by one variant, and audits that and all that the variant has sold before.
func (l *lab) books(ctx context.Context, a *variant) (err error) {
	b := a.buyers
	if b.skus, err = l.offer(ctx, a, 1, few); err != nil {
		return err
	}
	b.rate, b.limit, b.n = 0, few*demand, min(b.n, most)
	t := b.run(ctx, time.Now())
	if err := ctx.Err(); err != nil {
		return err
	}
	a.Errors += t.failed
	a.AuditOK = true
	for _, sku := range a.skus {
		audits, err := l.store.Audit(ctx, sku)
		if err != nil {
			return err
		}
		a.Oversold += audits[0].Oversold()
		a.Undersold += audits[0].Undersold()
		a.LostUpdates += audits[0].LostUpdates()
		a.AuditOK = a.AuditOK && audits[0].OK()
	}
	l.say("audit of %-16s oversold %d, undersold %d, lost updates %d", a.Strategy, a.Oversold, a.Undersold, a.LostUpdates)
	return nil
}
