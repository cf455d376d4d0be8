package waitlist_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/dlocktest"
)

// absent is a lock service that does not answer.
func absent() *dlocktest.Faulty { return dlocktest.Fails(errors.New("connection refused")) }

// Without a queue everybody looks once per FallbackPoll, and no more than a few are at the
// database at the same time.
func TestWithoutAQueueWaitersPoll(t *testing.T) {
	const waiters = 100
	var failures atomic.Int32
	queue := absent()
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		c.Queue, c.FallbackPoll = queue, time.Second
		c.OnError = func(string, error) { failures.Add(1) }
		w := start(t, c)
		s := newShelf()
		var all sync.WaitGroup
		var now, most atomic.Int32
		for id := range waiters {
			claim := s.claim(id, 1)
			try := claim.Try
			claim.Try = func(ctx context.Context) (bool, error) {
				defer now.Add(-1)
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(200 * time.Millisecond)
				return try(ctx)
			}
			all.Go(func() {
				if err := w.Wait(t.Context(), s.key, claim); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Second)
		if looks := read(s, &s.looks); looks < 10*waiters || looks > 13*waiters {
			t.Errorf("%d waiters looked %d times in 10 s", waiters, looks)
		}
		s.give(w, waiters)
		given := time.Now()
		all.Wait()
		if d := time.Since(given); d > 5*time.Second {
			t.Errorf("all were served after %v", d)
		}
		if n := most.Load(); n > 8 {
			t.Errorf("%d tries at the same time", n)
		}
		if int64(failures.Load()) < queue.Calls.Load() {
			t.Errorf("%d errors, %d were notified", queue.Calls.Load(), failures.Load())
		}
	})
}
