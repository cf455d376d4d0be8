package throughput

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	customers "example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/sqlstore"
)

const (
	startTimeout = time.Minute
	orderTTL     = "24h" // so that nothing expires meanwhile
)

// Throughput measures every variant. It returns an error if it could not. The report has the audit of each variant.
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
	run      string // marks the SKUs of this run

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
	shop     *customers.Shop // to put SKUs on sale
	buyers   *buyers
	skus     []string // of all turns
}

func open(ctx context.Context, c Config) (l *lab, err error) {
	l = &lab{Config: c, run: strings.ToLower(rand.Text()[:8])}
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
	shop := customers.New(own, offering)
	defer shop.Close()
	if l.Strategies, err = l.choose(ctx, shop); err != nil {
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
	if l.store, err = sqlstore.Open(ctx, sqlstore.Config{URL: l.stores.database, Instance: "lab", Connections: 2}); err != nil {
		return l, err
	}
	return l, l.store.Migrate(ctx) // an earlier shop may have made the schema
}

// add makes a variant.
func (l *lab) add(name, strategy string, urls []string) error {
	b, err := newBuyers(urls, l.Connections)
	if l.Keys {
		b.keys = l.run
	}
	b.own = l.Own
	l.variants = append(l.variants, &variant{Variant: Variant{Strategy: name}, strategy: strategy, shop: customers.New(urls, offering), buyers: b})
	return err
}

// Close ends what open has started.
func (l *lab) Close() error {
	var errs []error
	for _, a := range l.variants {
		a.buyers.Close()
		a.shop.Close()
	}
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
