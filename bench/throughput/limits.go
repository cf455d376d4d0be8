package throughput

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// batch is how many rows a transaction of many has.
const batch = 256

// limits measures the parts alone.
func (l *lab) limits(ctx context.Context) (r Limits, err error) {
	if l.stores.mariadb != nil {
		if r.Commits, r.Rows, err = l.database(ctx); err != nil {
			return r, err
		}
		l.say("the database alone: %.0f commits/s of one row, %.0f rows/s in transactions of %d", r.Commits, r.Rows, batch)
	}
	if r.Requests, err = l.requests(ctx); err != nil {
		return r, err
	}
	l.say("the HTTP stack alone: %.0f requests/s", r.Requests)
	return r, nil
}

// repeat does do from so many goroutines for the time of a turn, and returns how often
// per second.
func (l *lab) repeat(ctx context.Context, goroutines int, do func(worker, n int) error) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, min(l.Duration, 3*time.Second))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var done atomic.Int64
	start := time.Now()
	for w := range goroutines {
		group.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				if err := do(w, n); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return round(float64(done.Load())/time.Since(start).Seconds(), 0), err
}

// database is what the database takes of rows like those of orders.
func (l *lab) database(ctx context.Context) (commits, rows float64, err error) {
	const limitTable = "lab_limit"
	workers := l.Connections
	db, err := sql.Open("mysql", l.stores.mariadb.DSN()+"?interpolateParams=true")
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(workers)
	db.SetMaxIdleConns(workers)
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+limitTable+" (id CHAR(36) PRIMARY KEY, sku VARCHAR(64), quantity INT, status VARCHAR(16), at DATETIME(3), KEY (sku))"); err != nil {
		return 0, 0, err
	}
	defer db.ExecContext(context.WithoutCancel(ctx), "DROP TABLE "+limitTable) //nolint:errcheck // the database goes with the run
	insert := func(rows int) func(w, n int) error {
		//nolint:gosec // there is nothing in it from elsewhere
		text := "INSERT INTO " + limitTable + " VALUES " + strings.Repeat("(?,?,1,'PENDING',NOW(3)),", rows-1) + "(?,?,1,'PENDING',NOW(3))"
		return func(w, n int) error {
			args := make([]any, 0, 2*rows)
			for i := range rows {
				args = append(args, fmt.Sprintf("%08x-%08x-%04x-%04x", n, w, rows, i), "lab")
			}
			_, err := db.ExecContext(ctx, text, args...)
			return err
		}
	}
	if commits, err = l.repeat(ctx, workers, insert(1)); err != nil {
		return 0, 0, err
	}
	batches, err := l.repeat(ctx, l.Instances, insert(batch))
	return commits, batches * batch, err
}

// requests is what the instances answer of requests that ask for nothing.
func (l *lab) requests(ctx context.Context) (float64, error) {
	b := l.variants[0].buyers
	return l.repeat(ctx, l.Connections, func(w, _ int) error {
		host := b.hosts[w%len(b.hosts)]
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		req.SetRequestURI("/livez")
		req.Header.SetHost(host.Addr)
		return host.DoTimeout(req, resp, b.timeout)
	})
}
