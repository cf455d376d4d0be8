package order

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

var (
	errPoison = errors.New("poison")
	errGone   = errors.New("gone")
)

// transaction is a call of Commit that the test ends.
type transaction struct {
	ctx     context.Context //nolint:containedctx // The test reads it.
	batches []*Batch
	answer  chan error
}

// String returns the ids of the orders, batch by batch.
func (c transaction) String() string { return idsOf(c.batches) }

func idsOf(batches []*Batch) string {
	var all []string
	for _, b := range batches {
		var ids []string
		for _, r := range b.Requests {
			ids = append(ids, r.Order.ID)
		}
		all = append(all, strings.Join(ids, " "))
	}
	return strings.Join(all, " | ")
}

// fence returns the fence of the first batch.
func (c transaction) fence() dlock.Fence { return c.batches[0].Claims[0].Fence }

// transactions is a store whose transactions and reads the test ends.
type transactions struct {
	Store

	begun chan transaction
	reads chan chan int64      // of the level; each is answered with what is available, or less than nothing for an error
	judge func([]*Batch) error // if it is not nil, it ends the transactions
}

// Commit implements [Store].
func (s *transactions) Commit(ctx context.Context, batches ...*Batch) error {
	var err error
	if s.judge != nil {
		err = s.judge(batches)
	} else {
		c := transaction{ctx, batches, make(chan error)}
		s.begun <- c
		err = <-c.answer
	}
	for _, b := range batches {
		for _, r := range b.Requests {
			r.Answered = r.Answered || err == nil && b.Err == nil
			r.Uncertain = r.Uncertain || errors.Is(err, ErrOutcomeUnknown)
		}
	}
	return err
}

// Level implements [Store].
func (s *transactions) Level(_ context.Context, sku string) (stock.Level, error) {
	read := make(chan int64)
	s.reads <- read
	if n := <-read; n >= 0 {
		return stock.Level{SKU: sku, OnHand: n}, nil
	}
	return stock.Level{}, stock.ErrUnavailable
}

// leader is a locker without rounds, so that each lane has a leader that waits for its lease.
type leader struct{ dlock.Locker }

// rounds is a locker that notes for which keys it was asked at once.
type rounds struct {
	*memlock.Locker

	mu    sync.Mutex
	asked []string      // guarded by mu
	gate  chan struct{} // if it is not nil, each call waits for it
}

// TryAcquireEach implements [dlock.EachLocker].
func (l *rounds) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	l.mu.Lock()
	l.asked = append(l.asked, strings.ReplaceAll(strings.Join(keys, " "), stock.LockKey(""), ""))
	l.mu.Unlock()
	if l.gate != nil {
		<-l.gate
	}
	return l.Locker.TryAcquireEach(ctx, keys)
}

// rig is a service whose transactions the test ends. It is to be used in a bubble.
type rig struct {
	*testing.T
	*transactions

	lock       *memlock.Locker
	strategies *stock.Strategies
	service    *Service
	queue      *commitQueue
}

// newRig returns a rig that has its leases from over(lock).
func newRig(t *testing.T, lock *memlock.Locker, over func(*memlock.Locker) dlock.Locker) *rig {
	t.Helper()
	s := &transactions{begun: make(chan transaction), reads: make(chan chan int64)}
	strategies := stock.NewStrategies(stock.Lockers{Redis: over(lock)})
	service := NewService(s, strategies, Config{})
	return &rig{T: t, transactions: s, lock: lock, strategies: strategies, service: service, queue: service.queue}
}

func byLeaders(l *memlock.Locker) dlock.Locker { return leader{l} }

func inRounds(l *memlock.Locker) dlock.Locker { return l }

// bubble runs f in a bubble of its own, in which time passes when everybody waits. At the end nothing is left in the queue or locked.
func bubble(t *testing.T, over func(*memlock.Locker) dlock.Locker, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memlock.New(memlock.Config{}), over)
		f(r)
		if err := r.service.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		r.empty("a", "b", "c")
	})
}

// bothLeases is bubble for leases of leaders and of rounds.
func bothLeases(t *testing.T, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	for name, over := range map[string]func(*memlock.Locker) dlock.Locker{"leaders": byLeaders, "rounds": inRounds} {
		t.Run(name, func(t *testing.T) { bubble(t, over, f) })
	}
}

// empty fails unless the queue is empty, and the SKUs are free.
func (r *rig) empty(skus ...string) {
	r.Helper()
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lanes)+len(q.ready)+len(q.leasing) > 0 || q.open {
		r.Errorf("left behind: %d lanes, %d units, %d lanes without a lease, open %v", len(q.lanes), len(q.ready), len(q.leasing), q.open)
	}
	for _, sku := range skus {
		if s, _ := r.lock.Inspect(r.Context(), stock.LockKey(sku)); s.Held || s.Waiters > 0 {
			r.Errorf("left behind: %+v", s)
		}
	}
}

// entry returns an order of one unit of each of skus, which are named strategy/name, or name for redis-cohort.
func (r *rig) entry(ctx context.Context, id string, skus ...string) *entry {
	r.Helper()
	e := &entry{Request: &Request{Order: Order{ID: id, CustomerID: "c"}}, ctx: ctx, answer: make(chan error, 1)}
	for _, sku := range skus {
		name, _, other := strings.Cut(sku, "/")
		if !other {
			name = "redis-cohort"
		}
		st, err := r.strategies.Lookup(name)
		if err != nil {
			r.Fatal(err)
		}
		o := stock.Offer{SKU: sku, Strategy: st}
		r.service.offers.known.LoadOrStore(sku, o)
		e.offers = append(e.offers, o)
		e.Order.Items = append(e.Order.Items, Item{SKU: sku, Quantity: 1})
	}
	return e
}

// place has e committed, and returns where its error will be. The order has its place in the queue when place returns.
func (r *rig) place(e *entry) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.queue.do(e) }()
	synctest.Wait()
	return done
}

// do is place for an order of skus.
func (r *rig) do(ctx context.Context, id string, skus ...string) <-chan error {
	r.Helper()
	return r.place(r.entry(ctx, id, skus...))
}

// all is do for several orders of sku.
func (r *rig) all(sku string, ids ...string) map[string]<-chan error {
	r.Helper()
	done := make(map[string]<-chan error)
	for _, id := range ids {
		done[id] = r.do(r.Context(), id, sku)
	}
	return done
}

// bounded is do for an order of the SKU a with a maximum wait.
func (r *rig) bounded(ctx context.Context, wait time.Duration, id string) <-chan error {
	r.Helper()
	e := r.entry(ctx, id, "a")
	e.lockBy = time.Now().Add(wait)
	return r.place(e)
}

// fill has a transaction open, of an order of another SKU, until end is called.
func (r *rig) fill() (end func()) {
	r.Helper()
	done := r.do(r.Context(), "fill", "for-update/fill")
	c := r.commit("fill")
	return func() {
		r.Helper()
		c.answer <- nil
		r.ended(done, nil)
	}
}
