package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/sqlstore"
)

const (
	startTimeout = 2 * time.Minute
	armTimeout   = 15 * time.Minute
	stall        = 20 * time.Second // without an answer, after which a sale is given up: twice what an instance takes for one
	tries        = 3                // for an unsafe baseline that does not oversell, and a lock without fences that does
)

// Run holds one sale per strategy and reports what came of it. It prints to
// c.Out as it goes. It returns an error when the sales could not be held; what
// they showed is in Report.Verdict.
func Run(ctx context.Context, c Config) (r Report, err error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	c = c.withDefaults()
	st, err := fleet.OpenStores(ctx, fleet.StoresConfig{
		Redis: c.Redis, Database: c.Database, Redlock: c.Redlock, ZooKeeper: c.ZooKeeper, Etcd: c.Etcd, All: c.All, Embed: c.URL == "",
	})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = closing(err, st) }()
	p := &printer{Config: c}
	p.start(st)

	f := &fleet.Fleet{}
	urls := []string{c.URL}
	if c.URL == "" {
		start, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		if f, err = fleet.Start(start, fleet.Config{Executable: c.Executable, Dir: st.Dir, First: 1, N: c.Instances, Env: st.Env()}); err != nil {
			return Report{}, err
		}
		defer func() { err = closing(err, f) }()
		urls = f.URLs()
	}
	books, err := openDatabase(ctx, st.Database)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = closing(err, books) }()

	d := &demo{Config: c, shop: buyers.New(urls, customers), stores: st, books: books, printer: p, run: strings.ToLower(rand.Text()[:8])}
	defer d.shop.Close()
	if c.URL != "" {
		if d.Instances, err = d.shop.Count(ctx); err != nil {
			return Report{}, err
		}
	}
	if c.Strategies, err = d.choose(ctx); err != nil {
		return Report{}, err
	}
	members, err := gather(ctx, d.shop, f.URLs()) // of a service that runs already, those it has
	if err != nil {
		return Report{}, err
	}
	p.members(members)
	r = Report{Instances: d.Instances, Stores: kinds(st), Missing: Missing{Stores: st.Missing, Strategies: d.missing}, Cluster: members}
	for _, s := range c.Strategies {
		variant, err := d.variant(ctx, s)
		if err != nil {
			return r, err
		}
		r.Variants = append(r.Variants, variant)
	}
	if r.Expiry, err = d.unpaid(ctx, f); err != nil {
		return r, err
	}
	r.Verdict = verdict(r)
	if err := p.report(r); err != nil {
		return r, err
	}
	if c.Keep {
		p.keep(urls, st.Database, d.lastSKU)
		<-ctx.Done()
	}
	return r, nil
}

// choose returns the strategies to sell by: those that were asked for, or all that the
// service has the stores for.
func (d *demo) choose(ctx context.Context) ([]string, error) {
	offered, missing, err := d.shop.Strategies(ctx)
	if err != nil || len(d.Strategies) == 0 {
		d.missing = missing
		return offered, err
	}
	for _, s := range d.Strategies {
		if !slices.Contains(offered, s) {
			return nil, fmt.Errorf("strategy %s: the service was started without its store; it has %s", s, strings.Join(offered, ", "))
		}
	}
	return d.Strategies, nil
}

// openDatabase opens the database of the instances, to read it. One that no instance has prepared is refused before anything is sold.
func openDatabase(ctx context.Context, database string) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	books, err := sqlstore.Open(ctx, sqlstore.Config{URL: database, Instance: "demo", Connections: 2, Access: sqlstore.AccessRead})
	if err != nil {
		return nil, fmt.Errorf("%w: check --database", err)
	}
	if err := books.RequireSchema(ctx); err != nil {
		if errors.Is(err, sqlstore.ErrNoSchema) {
			err = fmt.Errorf("%s has no schema of shop: check --database", books.Address())
		}
		return nil, errors.Join(err, books.Close())
	}
	return books, nil
}

// demo is a run under way.
type demo struct {
	Config
	shop    *buyers.Shop
	stores  *fleet.Stores
	books   *sqlstore.Store
	printer *printer
	run     string // distinguishes this run's SKUs from those of earlier ones
	lastSKU string
	missing []string // strategies that were not named and have no store
}

// unpaid lets orders expire, if the instances are the demo's own. Those of the
// sales, f, make way for others, unless somebody wants to keep them.
func (d *demo) unpaid(ctx context.Context, f *fleet.Fleet) (*Expiry, error) {
	if d.URL != "" {
		d.printer.noExpiry()
		return nil, nil //nolint:nilnil // nothing is what there is to report
	}
	if !d.Keep {
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	e, err := d.expiry(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("expiry: %w", context.Cause(ctx))
	}
	if err != nil {
		e.err = cmp.Or(e.err, err.Error())
	}
	d.printer.expiry(e)
	return &e, nil
}

// closing closes c and adds what goes wrong to err.
func closing(err error, c io.Closer) error { return errors.Join(err, c.Close()) }

// variant runs the sale of one strategy. An unsafe baseline gets several chances to oversell. A lock without fencing
// tokens gets several chances not to. It may oversell on a machine that is paused beyond a lease. The result has the
// number of repetitions. A sale that cannot be run is a result as well; if no instance responds, it is inconclusive.
func (d *demo) variant(ctx context.Context, strategy string) (variant Variant, err error) {
	for try := 1; ; try++ {
		if variant, err = d.sale(ctx, strategy, try); ctx.Err() != nil {
			return variant, fmt.Errorf("%s: %w", strategy, context.Cause(ctx))
		}
		if err != nil {
			variant = Variant{
				Strategy: strategy, Expected: expected(strategy, d.Instances), Stock: d.Stock, Attempts: d.Attempts,
				Verdict: Broken, firstError: err.Error(),
			}
			if _, unanswered := errors.AsType[*url.Error](err); unanswered {
				variant.Verdict = Inconclusive
			}
		}
		variant.Repeated = try - 1
		if !again(variant) || try == tries {
			d.printer.variant(variant)
			return variant, nil
		}
	}
}

// again reports whether a sale shows nothing of its strategy, so that it is held once more.
func again(a Variant) bool {
	if a.Strategy == unfenced {
		return a.Verdict == Oversold
	}
	return slices.Contains(baselines, a.Strategy) && a.Expected == Oversold && a.Verdict != Oversold
}

// errStalled ends a sale. That all permits are in use counts as an answer: who says so is at work for others.
var errStalled = fmt.Errorf("no request got a response for %v", stall)

// sale sells one new SKU and audits it. It gives up when nobody gets an answer any more.
func (d *demo) sale(ctx context.Context, strategy string, try int) (Variant, error) {
	ctx, cancel := context.WithTimeout(ctx, armTimeout)
	defer cancel()
	sku := fmt.Sprintf("demo-%s-%s-%d", strategy, d.run, try)
	d.lastSKU = sku
	if err := d.shop.Stock(ctx, sku, strategy, d.Stock); err != nil {
		return Variant{}, err
	}
	bar := d.printer.bar(strategy, d.Attempts)
	selling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := time.AfterFunc(stall, func() { stop(errStalled) })
	defer watch.Stop()
	var done atomic.Int64
	s := d.shop.Sell(selling, sku, d.Attempts, func(o buyers.Outcome, _ int, _ time.Duration) {
		watch.Reset(stall)
		if o != buyers.AtLimit {
			bar.set(int(done.Add(1)))
		}
	})
	bar.clear()
	if selling.Err() != nil {
		s.GiveUp(d.Attempts, context.Cause(selling))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), stall) // for the audit
		defer cancel()
	}
	audits, err := d.books.Audit(ctx, sku)
	if err != nil {
		return Variant{}, err
	}
	return judge(strategy, d.Stock, d.Attempts, d.Instances, s, audits[0]), nil
}
