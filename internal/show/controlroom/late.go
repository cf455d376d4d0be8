package controlroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/redislog"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/show/lab"
	"example.com/shop/internal/stock"
)

// lateHolder is the name of the process in the lock lane.
const lateHolder = "late holder"

// latePatience is how long a late holder may take to get a lease, and to write after it has expired.
const latePatience = 30 * time.Second

// late starts a late holder for a lane of the sale whose strategy takes a lease from Redis. It returns at once; the lock lane shows what
// happens.
func (r *Room) late(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sale == nil || !r.sale.Running {
		return conflict{errors.New("no sale is under way: a late holder needs others that take the lease meanwhile")}
	}
	if r.isLate {
		return conflict{errors.New("a holder is late already")}
	}
	strategies := stock.NewStrategies(stock.Lockers{})
	for _, l := range r.sale.Lanes {
		if s, _ := strategies.Lookup(l.Strategy); s.Store == "redis" && s.Counter == nil { // it is known, if unavailable here
			r.isLate = true
			r.tasks.Go(func() { r.holdLate(ctx, l.SKU, s) })
			return nil
		}
	}
	return conflict{errors.New("no strategy of this sale takes a lease from Redis: choose redis or redis-unfenced")}
}

// holdLate runs a late holder and publishes what it does, as an instance would.
func (r *Room) holdLate(ctx context.Context, sku string, s stock.Strategy) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.isLate = false
	}()
	ctx, cancel := context.WithTimeout(ctx, latePatience)
	defer cancel()
	if err := r.publishLate(ctx, sku, s); err != nil && ctx.Err() == nil {
		fmt.Fprintf(r.Out, "late holder: %v\n", err)
	}
}

func (r *Room) publishLate(ctx context.Context, sku string, s stock.Strategy) error {
	rdb, err := redisclient.New(r.stores.Redis)
	if err != nil {
		return err
	}
	defer rdb.Close()
	log, err := redislog.New(rdb)
	if err != nil {
		return err
	}
	publisher := events.NewPublisher(log, events.PublisherConfig{Instance: lateHolder})
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- publisher.Run(running) }()
	asked, ended, held := time.Now(), func() {}, uint64(0)
	err = lab.LateHolder{
		SKU: sku, Update: s.Update, Database: r.stores.Database, Redis: r.stores.Redis,
		Granted: func(token uint64) {
			held = token
			expires := time.Now().Add(lab.LateTTL)
			ended = publisher.Held(sku, s.Name, token, asked, func() time.Time { return expires })
		},
		Written: func(accepted uint64) {
			if accepted > 0 {
				publisher.Refused(sku, s.Name, held, accepted)
			}
		},
	}.Do(ctx, lab.Config{Executable: r.Executable})
	ended()
	stop()
	return errors.Join(err, <-done)
}
