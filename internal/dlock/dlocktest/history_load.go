package dlocktest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// Load is what the clients of a history do: each takes random keys, waiting or not, holds them for a random time, and
// releases them.
type Load struct {
	Keys    []string
	Rounds  int           // of each client, unless the context of Run ends before
	Permits int           // the most that is taken at once; 0 means 1
	Hold    time.Duration // the longest time of holding; 0 means 3 ms
	MaxWait time.Duration // the longest wait of one call
	Seed    uint64
}

// Seed returns SHOP_TEST_SEED, or a new seed, and makes a failing test name it.
// The same seed repeats the choices of a test, though not the timing.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := mathrand.Uint64()
	if text := os.Getenv("SHOP_TEST_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SHOP_TEST_SEED: %v", err)
		}
		seed = given
	}
	t.Logf("SHOP_TEST_SEED=%d repeats the choices of this test", seed)
	return seed
}

// HistoryKeys returns n keys that nobody else uses.
func HistoryKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "history-" + strconv.Itoa(i) + "-" + rand.Text()
	}
	return keys
}

// Run lets every client do its rounds, all at the same time, and waits for them.
// The end of ctx makes them release what they hold, and stop.
func (l Load) Run(ctx context.Context, clients ...*HistoryClient) {
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			random := mathrand.New(mathrand.NewPCG(l.Seed, uint64(i)))
			for round := 0; round < l.Rounds && ctx.Err() == nil; round++ {
				l.round(ctx, c, random)
			}
		})
	}
	wg.Wait()
}

// round ignores errors: the history has them.
func (l Load) round(ctx context.Context, c *HistoryClient, random *mathrand.Rand) {
	key := l.Keys[random.IntN(len(l.Keys))]
	n := 1 + random.IntN(cmp.Or(l.Permits, 1))
	hold := time.Duration(random.Int64N(int64(cmp.Or(l.Hold, 3*time.Millisecond))))
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.MaxWait)
	defer cancel()
	take := c.Acquire
	if random.IntN(2) == 0 {
		take = c.TryAcquire
	}
	lease, err := take(attempt, key, n)
	if err != nil {
		if errors.Is(err, dlock.ErrHeld) {
			hold /= 4
		}
		pause(ctx, hold) // neither flood a server that refuses nor one that is unavailable
		return
	}
	select {
	case <-time.After(hold):
	case <-lease.Done():
	case <-ctx.Done():
	}
	_ = lease.Release(ctx)
}

// RWPermits is how many permits a writer has, of a read/write lock that is used as
// a semaphore: all that a history takes. A reader has one.
const RWPermits = 2

// rwSemaphore is l in the shape of a semaphore, for a [Load] that takes one or
// [RWPermits]. It is none: readers have no limit.
type rwSemaphore struct{ l dlock.RWLocker }

// Acquire implements [dlock.Semaphore].
func (s rwSemaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return side(s.l, n == RWPermits).Acquire(ctx, key)
}

// TryAcquire implements [dlock.Semaphore].
func (s rwSemaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return side(s.l, n == RWPermits).TryAcquire(ctx, key)
}
