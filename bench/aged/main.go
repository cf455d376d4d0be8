// Command aged fills a database with settled orders, and measures how much slower the shop sells there than on an empty one.
//
// One of two orders is of one SKU, the other of two. Each was paid, cancelled or has expired, so that there are three ledger
// entries per order. All are older than a day. It takes about 1.3 GB per million orders.
//
//	cd bench && go run ./aged --database mysql://USER@HOST/aged --empty mysql://USER@HOST/fresh --orders 10000000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"example.com/shop/internal/sqlstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "aged:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("aged", flag.ContinueOnError)
	aged := flags.String("database", "sqlite:aged.db", "`URL` of the database to fill")
	empty := flags.String("empty", "", "`URL` of an empty database, whose sale is compared; empty: none")
	orders := flags.Int("orders", 1_000_000, "how many settled orders the database gets; 0: it has them")
	skus := flags.Int("skus", 100, "of how many SKUs the orders are")
	sale := flags.Duration("sale", 10*time.Second, "how long each sale takes")
	pairs := flags.Int("pairs", 5, "how many sales of each database are compared")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *skus < 2 {
		return errors.New("--skus: want 2 or more") // an order of two SKUs
	}
	if *pairs < 1 {
		return errors.New("--pairs: want 1 or more")
	}
	old, err := open(ctx, *aged)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if *orders > 0 {
		began := time.Now()
		if err := fill(ctx, old, *aged, *orders, *skus); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d orders in %v\n", *orders, time.Since(began).Round(time.Second))
	}
	for _, what := range []string{"first audit", "second audit"} {
		if err := audit(ctx, old, what, out); err != nil {
			return err
		}
	}
	if *empty == "" {
		return nil
	}
	fresh, err := open(ctx, *empty)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	if err := compare(ctx, old, fresh, *pairs, *sale, out); err != nil {
		return err
	}
	return audit(ctx, old, "audit after the sale", out)
}

func open(ctx context.Context, url string) (*sqlstore.Store, error) {
	s, err := sqlstore.Open(ctx, sqlstore.Config{URL: url, Instance: "aged"})
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// audit prints how long an audit takes of what was written since the last one.
func audit(ctx context.Context, s *sqlstore.Store, what string, out io.Writer) error {
	began := time.Now()
	audits, err := s.AuditRecent(ctx, "")
	if err != nil {
		return err
	}
	var checked int64
	for _, a := range audits {
		checked += a.Checked
		for _, b := range a.Broken() {
			return fmt.Errorf("%s: %s", a.SKU, b)
		}
	}
	fmt.Fprintf(out, "%s: %v for %d ledger entries\n", what, time.Since(began).Round(time.Millisecond), checked)
	return nil
}
