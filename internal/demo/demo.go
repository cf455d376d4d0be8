package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/sqlstore"
)

const (
	startTimeout = 30 * time.Second
	armTimeout   = 3 * time.Minute
	tries        = 3 // for a control that does not oversell
)

// Run holds one sale per strategy and reports what came of it. It prints to
// c.Out as it goes. It returns an error when the sales could not be held; what
// they showed is in Report.Verdict.
func Run(ctx context.Context, c Config) (r Report, err error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	c = c.withDefaults()
	st, err := openStores(c)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = closing(err, st) }()
	p := &printer{Config: c}
	p.start(st)

	f := &fleet{}
	urls := []string{c.Target}
	if c.Target == "" {
		start, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		if f, err = startFleet(start, c.Executable, st.dir, 1, c.Instances, st.args()); err != nil {
			return Report{}, err
		}
		defer func() { err = closing(err, f) }()
		urls = f.urls()
	}
	books, err := openBooks(ctx, st.database)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = closing(err, books) }()

	d := &demo{Config: c, shop: newShop(urls), stores: st, books: books, printer: p, run: strings.ToLower(rand.Text()[:8])}
	defer d.shop.client.CloseIdleConnections()
	if c.Target != "" {
		if d.Instances, err = d.shop.count(ctx); err != nil {
			return Report{}, err
		}
	}
	r = Report{Instances: d.Instances, Stores: Stores{Redis: st.redisKind, Database: st.databaseKind}}
	for _, s := range c.Strategies {
		arm, err := d.arm(ctx, s)
		if err != nil {
			return r, err
		}
		r.Arms = append(r.Arms, arm)
	}
	if r.Expiry, err = d.unpaid(ctx, f); err != nil {
		return r, err
	}
	r.Verdict = verdict(r)
	if err := p.report(r); err != nil {
		return r, err
	}
	if c.Keep {
		p.keep(urls, st.database, d.lastSKU)
		<-ctx.Done()
	}
	return r, nil
}

func openBooks(ctx context.Context, url string) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return sqlstore.Open(ctx, sqlstore.Config{URL: url, Instance: "demo", Connections: 2})
}

// demo is a run under way.
type demo struct {
	Config
	shop    *shop
	stores  *stores
	books   *sqlstore.Store
	printer *printer
	run     string // tells this run's SKUs from those of earlier ones
	lastSKU string
}

// unpaid lets orders expire, if the instances are the demo's own. Those of the
// sales, f, make way for others, unless somebody wants to keep them.
func (d *demo) unpaid(ctx context.Context, f *fleet) (*Expiry, error) {
	if d.Target != "" {
		d.printer.noExpiry()
		return nil, nil //nolint:nilnil // nothing is what there is to report
	}
	if !d.Keep {
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	e, err := d.expiry(ctx)
	if err != nil {
		return nil, fmt.Errorf("expiry: %w", err)
	}
	d.printer.expiry(e)
	return &e, nil
}

// closing closes c and adds what goes wrong to err.
func closing(err error, c io.Closer) error { return errors.Join(err, c.Close()) }

// arm holds the sale by one strategy. A control gets more than one chance to
// oversell.
func (d *demo) arm(ctx context.Context, strategy string) (arm Arm, err error) {
	for try := 1; ; try++ {
		if arm, err = d.sale(ctx, strategy, try); err != nil {
			return arm, fmt.Errorf("%s: %w", strategy, err)
		}
		control := slices.Contains(controls, strategy) && arm.Expected == Oversold
		if !control || arm.Verdict == Oversold || try == tries {
			d.printer.arm(arm)
			return arm, nil
		}
	}
}

// sale sells one new SKU and audits it.
func (d *demo) sale(ctx context.Context, strategy string, try int) (Arm, error) {
	ctx, cancel := context.WithTimeout(ctx, armTimeout)
	defer cancel()
	sku := fmt.Sprintf("demo-%s-%s-%d", strategy, d.run, try)
	d.lastSKU = sku
	if err := d.shop.stock(ctx, sku, strategy, d.Stock); err != nil {
		return Arm{}, err
	}
	bar := d.printer.bar(strategy, d.Attempts)
	s := d.shop.sell(ctx, sku, d.Attempts, bar.set)
	bar.clear()
	if ctx.Err() != nil {
		return Arm{}, context.Cause(ctx)
	}
	audits, err := d.books.Audit(ctx, sku)
	if err != nil {
		return Arm{}, err
	}
	return judge(strategy, d.Stock, d.Attempts, d.Instances, s, audits[0]), nil
}
