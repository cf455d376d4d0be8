package redisrw_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// patientRW returns an RW whose waiters ask again once a second only.
func patientRW(t testing.TB, rdb redis.UniversalClient) *redisrw.RW {
	t.Helper()
	l, err := redisrw.New(rdb, redisrw.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, l.Close)
	return l
}

// A phase of more readers than one script lets in is let in by the release that
// begins it, before the next writer.
func TestRWLargePhase(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const readers = 150
		rdb := redistest.Client(t, testbedtest.Redis(t))
		l, key := patientRW(t, rdb), rand.Text()
		first := redistest.MustTake(t, l.Acquire, key)
		var in, out sync.WaitGroup
		leave := make(chan struct{})
		in.Add(readers)
		for range readers {
			out.Go(func() {
				err := dlock.Do(t.Context(), readSide{l}, key, func(context.Context, dlock.Fence) error {
					in.Done()
					<-leave
					return nil
				})
				if err != nil {
					t.Error(err)
					in.Done()
				}
			})
		}
		testbedtest.Eventually(t, "the readers", func() bool { return redistest.RWWaiting(t, rdb, key) == readers })
		next := make(chan *dlock.Lease, 1)
		out.Go(func() {
			lease, err := l.Acquire(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			next <- lease
		})
		testbedtest.Eventually(t, "the next writer", func() bool { return redistest.RWWaiting(t, rdb, key) == readers+1 })
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := rdb.ZCard(t.Context(), redistest.RWKey(key)+":readers").Val(); n != readers {
			t.Errorf("%d of %d readers are in when the writer has released", n, readers)
		}
		in.Wait()
		select {
		case <-next:
			t.Error("the next writer is in alongside the readers")
		default:
		}
		close(leave)
		if lease := <-next; lease != nil {
			lease.Release(t.Context())
		}
		out.Wait()
	})
}

// readSide is the reader's side of an RW.
type readSide struct{ l *redisrw.RW }

// Acquire implements [dlock.Locker].
func (r readSide) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return r.l.AcquireRead(ctx, key)
}

// TryAcquire implements [dlock.Locker].
func (r readSide) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return r.l.TryAcquireRead(ctx, key)
}

// handOver returns how long a waiter takes to get what is released to it.
func handOver(t testing.TB, a, b *redisrw.RW, key string, admin redis.UniversalClient) time.Duration {
	t.Helper()
	lease, granted := redistest.MustTake(t, a.Acquire, key), make(chan *dlock.Lease, 1)
	go func() {
		lease, err := b.Acquire(t.Context(), key)
		if err != nil {
			t.Error(err)
		}
		granted <- lease
	}()
	testbedtest.Eventually(t, "the waiter", func() bool { return redistest.RWWaiting(t, admin, key) == 1 })
	start := time.Now()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	next := <-granted
	d := time.Since(start)
	if next != nil {
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return d
}

// A waiter gets the grant by a notification, not by asking again; when notifications are lost it
// gets the grant by asking again.
func TestRWHandOff(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin := redistest.Client(t, server.URL())
		a, b, key := patientRW(t, redistest.Client(t, server.URL())), patientRW(t, redistest.Client(t, server.URL())), rand.Text()
		var pushed []time.Duration
		for range 9 {
			pushed = append(pushed, handOver(t, a, b, key, admin))
		}
		slices.Sort(pushed)
		t.Logf("handed off within %v", pushed)
		if pushed[3] > 400*time.Millisecond { // polls of its own come after 800
			t.Errorf("most grants took more than %v, as if none had been notified", pushed[3])
		}
		ctx, stop := context.WithCancel(t.Context())
		var killer sync.WaitGroup
		killer.Go(func() {
			for ctx.Err() == nil {
				admin.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
			}
		})
		for range 3 {
			if d := handOver(t, a, b, key, admin); d > 10*time.Second { // the TTL is 30
				t.Errorf("without sends a grant took %v", d)
			}
		}
		stop()
		killer.Wait()
	})
}

// A key that nobody holds or waits for is remembered by its fencing token alone, and what
// a crash leaves behind ends by itself.
func TestRWLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, waiting, key := patientRW(t, rdb), patientRW(t, rdb), rand.Text()
		writer := redistest.MustTake(t, l.Acquire, key)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, take := range []func(context.Context, string) (*dlock.Lease, error){waiting.Acquire, waiting.AcquireRead} {
			wg.Go(func() { take(ctx, key) })
		}
		testbedtest.Eventually(t, "the waiters", func() bool { return redistest.RWWaiting(t, rdb, key) == 2 })
		for _, k := range rdb.Keys(t.Context(), redistest.RWKey(key)+"*").Val() {
			limit := 24 * time.Hour
			if k != redistest.RWKey(key) {
				limit = 3 * time.Second
			}
			if d := rdb.PTTL(t.Context(), k).Val(); d <= 0 || d > limit {
				t.Errorf("%s is kept for %v, want %v at most", k, d, limit)
			}
		}
		cancel()
		wg.Wait()
		if err := waiting.Close(t.Context()); err != nil { // where the server was slow, they leave in the background
			t.Error(err)
		}
		writer.Release(t.Context())
		reader := redistest.MustTake(t, l.AcquireRead, key)
		if d := rdb.PTTL(t.Context(), redistest.RWKey(key)+":readers").Val(); d <= 0 || d > 30*time.Second {
			t.Errorf("readers are kept for %v, want 30 s at most", d)
		}
		reader.Release(t.Context())
		if keys := rdb.Keys(t.Context(), redistest.RWKey(key)+"*").Val(); len(keys) != 1 || keys[0] != redistest.RWKey(key) {
			t.Errorf("what is left is %v", keys)
		}
	})
}

// A server that forgets the scripts, or everything, costs no renewal and no order
// of the fences.
func TestRWOnAServerThatForgets(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := redistest.Client(t, server.URL())
		l, key := redistest.RW(t, rdb, redisrw.Config{}), rand.Text()
		reader := redistest.MustTake(t, l.AcquireRead, key)
		for range 4 {
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			<-time.After(ttl / 2)
			if err := reader.Err(); err != nil {
				t.Fatalf("without scripts: %v", err)
			}
		}
		reader.Release(t.Context())
		writer := redistest.MustTake(t, l.Acquire, key)
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		next := redistest.MustTake(t, l.Acquire, key)
		if next.Fence().Token <= writer.Fence().Token {
			testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), writer.Fence())
		}
		select {
		case <-writer.Done():
		case <-time.After(2 * ttl):
			t.Error("the first writer is not notified of its loss")
		}
	})
}

// What has expired stays out: neither a clock that goes back nor a late request brings it in beside the other side.
func TestRWExpiredGrantsAreGone(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, key := redistest.RW(t, rdb, redisrw.Config{}), rand.Text()
		state, readers := redistest.RWKey(key), redistest.RWKey(key)+":readers"
		redistest.MustTake(t, l.Acquire, key)
		if err := rdb.HSet(t.Context(), state, "until", 1).Err(); err != nil {
			t.Fatal(err)
		}
		redistest.MustTake(t, l.AcquireRead, key)
		if writer := rdb.HGet(t.Context(), state, "writer").Val(); writer != "" {
			t.Errorf("the writer %s is there, beside a reader", writer)
		}
		for _, id := range rdb.ZRange(t.Context(), readers, 0, -1).Val() {
			if err := rdb.ZAddXX(t.Context(), readers, redis.Z{Score: 1, Member: id}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		redistest.MustTake(t, l.Acquire, key)
		if n := rdb.ZCard(t.Context(), readers).Val(); n != 0 {
			t.Errorf("%d readers are there, beside a writer", n)
		}
	})
}

// A release passes over more dead writers than one script does.
func TestRWManyDeadWriters(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		l, key := patientRW(t, rdb), rand.Text()
		holder := redistest.MustTake(t, l.Acquire, key)
		waits := make(chan *dlock.Lease, 1)
		go func() {
			lease, err := l.Acquire(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			waits <- lease
		}()
		testbedtest.Eventually(t, "the writer", func() bool { return redistest.RWWaiting(t, rdb, key) == 1 })
		dead := make([]redis.Z, 200)
		for i := range dead {
			dead[i] = redis.Z{Score: float64(i), Member: "dead-" + strconv.Itoa(i)}
		}
		if err := rdb.ZAdd(t.Context(), redistest.RWKey(key)+":writers-waiting", dead...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := holder.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := redistest.RWWaiting(t, rdb, key); n != 0 {
			t.Errorf("%d wait after the release, although the key is free", n)
		}
		if lease := <-waits; lease != nil {
			lease.Release(t.Context())
		}
	})
}
