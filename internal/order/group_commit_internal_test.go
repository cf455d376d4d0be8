package order

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/stock"
)

var errPoison = errors.New("poison")

// transactions is a store whose transactions the test ends.
type transactions struct {
	Store

	begun chan []*Batch
	end   chan error
}

// Commit implements [Store].
func (s *transactions) Commit(_ context.Context, batches ...*Batch) error {
	s.begun <- batches
	return <-s.end
}

// selling returns a batch of one order of sku.
func selling(sku string, u stock.Update) *Batch {
	return &Batch{Claims: []stock.Claim{{SKU: sku, Update: u}}, Requests: []*Request{{}}}
}

// shared runs f in a bubble with a group and what commits a batch in it.
func shared(t *testing.T, f func(t *testing.T, s *transactions, commit func(ctx context.Context, b *Batch) <-chan error)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &transactions{begun: make(chan []*Batch), end: make(chan error)}
		g := newGroupCommit(s)
		f(t, s, func(ctx context.Context, b *Batch) <-chan error {
			done := make(chan error, 1)
			go func() { done <- g.commit(ctx, b) }()
			synctest.Wait()
			return done
		})
	})
}

// A batch begins at once while no transaction is open. Later batches share the next transaction. A batch that
// decides by earlier reads, or may wait for another row, has its own at once.
func TestBatchesThatWaitShareATransaction(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		var done []<-chan error
		done = append(done, commit(t.Context(), selling("a", stock.Conditional)))
		if got := <-s.begun; len(got) != 1 {
			t.Errorf("a lonely batch is in a transaction of %d", len(got))
		}
		for _, sku := range []string{"b", "c", "b"} {
			done = append(done, commit(t.Context(), selling(sku, stock.RowLock)))
		}
		queued, uncertain := selling("d", stock.RowLock), selling("e", stock.RowLock)
		queued.Requests[0].Queued, uncertain.Requests[0].Uncertain = true, true
		for _, b := range []*Batch{selling("f", stock.WriteBack), selling("g", stock.Version), queued, uncertain} {
			done = append(done, commit(t.Context(), b))
			if got := <-s.begun; len(got) != 1 || got[0] != b {
				t.Errorf("%v is in a transaction with others", b.Claims)
			}
		}
		s.end <- nil
		if got := <-s.begun; len(got) != 3 {
			t.Errorf("%d batches in the next transaction, want 3", len(got))
		}
		for range len(done) - 3 {
			s.end <- nil
		}
		for _, d := range done {
			if err := <-d; err != nil {
				t.Error(err)
			}
		}
	})
}

// After a shared transaction, a few batches wait for others, for half the time that it took or for longestPause. Many do
// not wait, and neither does a batch that comes when no other waits.
func TestFewWaitForOthers(t *testing.T) {
	for name, c := range map[string]struct {
		alone       bool // in the transaction, which is then not a shared one
		waiting     int  // when the transaction ends
		took, pause time.Duration
		joined      int // of one that comes in the pause
	}{
		"few":    {waiting: 1, took: 8 * time.Millisecond, pause: 4 * time.Millisecond, joined: 1},
		"slow":   {waiting: 1, took: longTransaction - 1, pause: longestPause, joined: 1},
		"alone":  {alone: true, waiting: 1, took: 8 * time.Millisecond},
		"almost": {waiting: manyOrders - 1, took: 8 * time.Millisecond, pause: 4 * time.Millisecond, joined: 1},
		"many":   {waiting: manyOrders, took: 8 * time.Millisecond},
		"none":   {took: 8 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
				t.Helper()
				end := fill(t, s, commit)
				var done []<-chan error
				sell := func() { done = append(done, commit(t.Context(), selling("b", stock.RowLock))) }
				sell()
				if !c.alone {
					sell()
				}
				end()
				<-s.begun
				for range c.waiting {
					sell()
				}
				time.Sleep(c.took)
				s.end <- nil
				ended := time.Now()
				synctest.Wait()
				if c.pause > 0 || c.waiting == 0 {
					sell()
				}
				want := max(1, c.waiting+c.joined)
				if got := <-s.begun; len(got) != want || time.Since(ended) != c.pause {
					t.Errorf("%d batches after %v, want %d after %v", len(got), time.Since(ended), want, c.pause)
				}
				s.end <- nil
				for _, d := range done {
					if err := <-d; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// fill has a transaction open until end is called.
func fill(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) (end func()) {
	t.Helper()
	commit(t.Context(), selling("a", stock.RowLock))
	<-s.begun
	return func() { s.end <- nil }
}

// A batch that cannot be committed fails alone, in error or in panic; what is everybody's fault, or unknown, is not tried in halves.
func TestPoisonCostsOthersARepetition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		alone bool
	}{"poison": {errPoison, true}, "unavailable": {stock.ErrUnavailable, false}, "unknown": {ErrOutcomeUnknown, false}} {
		t.Run(name, func(t *testing.T) {
			shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
				t.Helper()
				end := fill(t, s, commit)
				bad := selling("bad", stock.RowLock)
				var all []<-chan error
				for i := range 8 {
					if i == 5 {
						all = append(all, commit(t.Context(), bad))
					} else {
						all = append(all, commit(t.Context(), selling("good", stock.RowLock)))
					}
				}
				var answering sync.WaitGroup
				ctx, stop := context.WithCancel(t.Context())
				answering.Go(func() {
					for {
						select {
						case got := <-s.begun:
							if slices.Contains(got, bad) {
								s.end <- c.err
							} else {
								s.end <- nil
							}
						case <-ctx.Done():
							return
						}
					}
				})
				end()
				failed := 0
				for i, d := range all {
					err := <-d
					if err != nil {
						failed++
					}
					if i == 5 && !errors.Is(err, c.err) {
						t.Errorf("the bad one: %v", err)
					}
				}
				stop()
				answering.Wait()
				if want := map[bool]int{true: 1, false: 8}[c.alone]; failed != want {
					t.Errorf("%d of 8 failed, want %d", failed, want)
				}
			})
		})
	}
}

// A batch whose row is locked is committed alone, where it may wait, and keeps nobody.
func TestLockedBatchGoesOnAlone(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		end := fill(t, s, commit)
		locked, other := selling("locked", stock.RowLock), selling("other", stock.RowLock)
		doneLocked, doneOther := commit(t.Context(), locked), commit(t.Context(), other)
		end()
		if got := <-s.begun; len(got) != 2 {
			t.Fatalf("%d batches", len(got))
		}
		locked.Err = ErrCommitAlone
		s.end <- nil
		if err := <-doneOther; err != nil {
			t.Error(err)
		}
		if got := <-s.begun; len(got) != 1 || got[0] != locked {
			t.Errorf("%v", got)
		}
		s.end <- nil
		if err := <-doneLocked; err != nil {
			t.Error(err)
		}
	})
}

// A transaction that waits, for a row or for a key, does not keep others from theirs, also if they want the same row.
func TestLongTransactionKeepsNobody(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		end := fill(t, s, commit)
		began := time.Now()
		for range 2 {
			commit(t.Context(), selling("a", stock.RowLock))
		}
		done := commit(t.Context(), selling("b", stock.RowLock))
		if got := <-s.begun; len(got) != 3 || time.Since(began) != longTransaction {
			t.Errorf("%d batches after %v", len(got), time.Since(began))
		}
		end()
		s.end <- nil
		if err := <-done; err != nil {
			t.Error(err)
		}
		end = fill(t, s, commit) // one is open as before, and no more
		waits := commit(t.Context(), selling("d", stock.RowLock))
		synctest.Wait()
		select {
		case <-s.begun:
			t.Error("more transactions are open than may be")
		default:
		}
		end()
		<-s.begun
		s.end <- nil
		if err := <-waits; err != nil {
			t.Error(err)
		}
	})
}

// A batch whose time is over leaves the queue. One that is in a transaction has its outcome.
func TestBatchLeavesTheQueue(t *testing.T) {
	shared(t, func(t *testing.T, s *transactions, commit func(context.Context, *Batch) <-chan error) {
		t.Helper()
		end := fill(t, s, commit)
		ctx, leave := context.WithCancelCause(t.Context())
		gone := commit(ctx, selling("b", stock.RowLock))
		stays := commit(t.Context(), selling("c", stock.RowLock))
		leave(errPoison)
		if err := <-gone; !errors.Is(err, errPoison) {
			t.Error(err)
		}
		end()
		got := <-s.begun
		if len(got) != 1 || got[0].Claims[0].SKU != "c" {
			t.Errorf("%v", got)
		}
		s.end <- nil
		if err := <-stays; err != nil {
			t.Error(err)
		}
		end = fill(t, s, commit)
		ctx, leave = context.WithCancelCause(t.Context())
		inside, beside := commit(ctx, selling("d", stock.RowLock)), commit(t.Context(), selling("e", stock.RowLock))
		end()
		<-s.begun
		leave(errPoison)
		s.end <- nil
		if err := errors.Join(<-inside, <-beside); err != nil {
			t.Errorf("it was committed: %v", err)
		}
	})
}
