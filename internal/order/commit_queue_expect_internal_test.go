package order

import (
	"errors"
	"testing/synctest"

	"example.com/shop/internal/stock"
)

// commit waits for a transaction with the orders ids, whose batches are separated by bars.
func (r *rig) commit(ids string) transaction {
	r.Helper()
	c := <-r.begun
	if got := c.String(); got != ids {
		r.Errorf("a transaction of %q, want %q", got, ids)
	}
	return c
}

// both waits for two transactions, with the orders a and with b, which may begin in either order.
func (r *rig) both(a, b string) (ofA, ofB transaction) {
	r.Helper()
	ofA, ofB = <-r.begun, <-r.begun
	if ofA.String() == b {
		ofA, ofB = ofB, ofA
	}
	if ofA.String() != a || ofB.String() != b {
		r.Errorf("transactions of %q and %q, want %q and %q", ofA, ofB, a, b)
	}
	return ofA, ofB
}

// nobody fails if a transaction has begun.
func (r *rig) nobody() {
	r.Helper()
	synctest.Wait()
	select {
	case c := <-r.begun:
		r.Fatalf("%q are being committed", c)
	default:
	}
}

// ended fails unless done has an error that matches want.
func (r *rig) ended(done <-chan error, want ...error) {
	r.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		for _, want := range want {
			if !errors.Is(err, want) || want == nil && err != nil {
				r.Errorf("the answer is %v, want %v", err, want)
			}
		}
	default:
		r.Errorf("no answer, want %v", want)
	}
}

// short fails unless done says that there were so many units of those wanted.
func (r *rig) short(done <-chan error, available int64) {
	r.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if s, ok := errors.AsType[*stock.ShortageError](err); !ok || s.Shortages[0].Available != available {
			r.Errorf("the answer is %v, want a shortage", err)
		}
	default:
		r.Error("no answer, want a shortage")
	}
}

// waits fails if done has an answer.
func (r *rig) waits(done <-chan error) {
	r.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		r.Errorf("answered with %v too early", err)
	default:
	}
}

// newer fails unless the fence of b is newer than that of a.
func (r *rig) newer(a, b transaction) {
	r.Helper()
	if b.fence().Token <= a.fence().Token {
		r.Errorf("fence %v after %v, want another lease", b.fence(), a.fence())
	}
}

// hold takes the lease of sku from outside.
func (r *rig) hold(sku string) (release func()) {
	r.Helper()
	lease, err := r.lock.Acquire(r.Context(), stock.LockKey(sku))
	if err != nil {
		r.Fatal(err)
	}
	return func() {
		r.Helper()
		if err := lease.Release(r.Context()); err != nil {
			r.Error(err)
		}
	}
}

// holdNext is hold as soon as the lease is free, before those who come later.
func (r *rig) holdNext(sku string) (held <-chan func()) {
	r.Helper()
	other := make(chan func(), 1)
	go func() { other <- r.hold(sku) }()
	synctest.Wait()
	return other
}
