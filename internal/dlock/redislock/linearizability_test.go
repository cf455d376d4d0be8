package redislock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// recovery is how long after the last fault a client may wait for what nobody holds.
const recovery = 3*ttl + 4*time.Second

// historyPermits is how many permits the semaphores of the histories have.
const historyPermits = 4

// contender is something to be taken and released, whose history is checked.
type contender struct {
	name    string
	permits int // the most that is taken at once; 1 for a lock
	model   func(faulty bool) porcupine.Model
	new     func(t testing.TB, rdb redis.UniversalClient) dlock.Semaphore

	// open and run replace what a contender that is no semaphore cannot do.
	open func(t testing.TB, h *dlocktest.History, rdb redis.UniversalClient) *dlocktest.HistoryClient
	run  func(ctx context.Context, l dlocktest.Load, clients ...*dlocktest.HistoryClient)
}

// contenders run through every history of this package.
func contenders() []contender {
	semaphores := func(bool) porcupine.Model { return dlocktest.SemaphoreModel(historyPermits) }
	lock := func(name string, cfg redislock.Config) contender {
		cfg.TTL = ttl
		locks := func(bool) porcupine.Model { return dlocktest.LockModel() }
		return contender{name: name, permits: 1, model: locks, new: func(t testing.TB, rdb redis.UniversalClient) dlock.Semaphore {
			l, err := redislock.New(rdb, cfg)
			if err != nil {
				t.Fatal(err)
			}
			testbedtest.Closing(t, l.Close)
			return single{l}
		}}
	}
	return []contender{
		lock("queue", redislock.Config{}),
		{name: "semaphore", permits: historyPermits, model: semaphores, new: func(t testing.TB, rdb redis.UniversalClient) dlock.Semaphore {
			s, err := redissem.New(rdb, redissem.Config{Permits: historyPermits, TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			testbedtest.Closing(t, s.Close)
			return s
		}},
	}
}

// single is a lock as a semaphore with one permit.
type single struct{ l dlock.Locker }

// Acquire implements [dlock.Semaphore].
func (s single) Acquire(ctx context.Context, key string, _ int) (*dlock.Lease, error) {
	return s.l.Acquire(ctx, key)
}

// TryAcquire implements [dlock.Semaphore].
func (s single) TryAcquire(ctx context.Context, key string, _ int) (*dlock.Lease, error) {
	return s.l.TryAcquire(ctx, key)
}

// trial records one history.
type trial struct {
	contender
	*dlocktest.History

	random *rand.Rand
	load   dlocktest.Load
	least  int // grants below which the history proves nothing
}

// histories runs a trial for each of some contenders.
func histories(t *testing.T, all []contender, keys int, faulty bool, f func(t testing.TB, tr *trial)) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				c.trial(t, keys, faulty, f)
			})
		})
	}
}

// trial runs f, after which the history must be in order. On a busy machine, requests can time out without a fault,
// and a fault may hit no request. Then the trial starts again, twice at most.
func (c contender) trial(t testing.TB, keys int, faulty bool, f func(t testing.TB, tr *trial)) {
	t.Helper()
	var tr *trial
	for range 3 {
		tr = c.attempt(t, keys, faulty)
		f(t, tr)
		if (tr.Disruptions() > 0) == faulty {
			break
		}
		t.Logf("%d losses and unknown outcomes", tr.Disruptions())
	}
	if tr.permits == 1 || tr.open != nil { // a semaphore promises no order of its tokens here
		tr.CheckFences(t)
	}
	if n := tr.Disruptions(); (n > 0) != faulty {
		t.Errorf("%d losses and unknown outcomes", n)
	}
	tr.Check(t, tr.model(faulty))
	if tr.permits == 1 {
		tr.CheckLossBeforeNextGrant(t)
	}
	if n := tr.Grants(); n < tr.least {
		t.Errorf("only %d grants: that proves nothing", n)
	}
}

func (c contender) attempt(t testing.TB, keys int, faulty bool) *trial {
	t.Helper()
	tr := &trial{contender: c, History: dlocktest.NewHistory(), least: 50}
	if faulty {
		tr.Faulty, tr.TTL = true, ttl
	}
	seed := dlocktest.Seed(t)
	tr.random = rand.New(rand.NewPCG(seed, seed))
	tr.load = dlocktest.Load{
		Keys: dlocktest.HistoryKeys(keys), Rounds: 1 << 30, Permits: c.permits, MaxWait: 10 * ttl, Seed: seed,
	}
	return tr
}

// client opens a client.
func (tr *trial) client(t testing.TB, rdb redis.UniversalClient) *dlocktest.HistoryClient {
	t.Helper()
	if tr.open != nil {
		return tr.open(t, tr.History, rdb)
	}
	return tr.Semaphore(tr.new(t, rdb))
}

// clients opens n clients, each with connections of its own.
func (tr *trial) clients(t testing.TB, n int, url string) []*dlocktest.HistoryClient {
	t.Helper()
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = tr.client(t, redistest.Client(t, url))
	}
	return all
}

// during runs the load while harm does its work, and stops it afterwards.
func (tr *trial) during(t testing.TB, clients []*dlocktest.HistoryClient, harm func()) {
	t.Helper()
	// The harm takes a minute and a half at full size; the load must outlast it.
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(testbedtest.Size(1, 5))*time.Minute)
	defer stop()
	var wg sync.WaitGroup
	run := tr.run
	if run == nil {
		run = func(ctx context.Context, l dlocktest.Load, clients ...*dlocktest.HistoryClient) {
			l.Run(ctx, clients...)
		}
	}
	wg.Go(func() { run(ctx, tr.load, clients...) })
	harm()
	for end := time.Now().Add(30 * time.Second); tr.Grants() < tr.least && time.Now().Before(end); { // a busy machine takes longer
		sleep(t, ttl/100)
	}
	stop()
	stopped := time.Now()
	wg.Wait()
	// All is released now, and what the faults have left expires within a TTL.
	if d := time.Since(stopped); d > recovery {
		t.Errorf("a client waited for another %v, with nobody left in its way", d)
	}
}

// between returns a random duration. It is for the goroutine that made the trial.
func (tr *trial) between(low, high time.Duration) time.Duration {
	return low + time.Duration(tr.random.Int64N(int64(high-low)))
}

func sleep(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	histories(t, append(contenders(), readersAndWriters()), 3, false, func(t testing.TB, tr *trial) {
		tr.load.Rounds = testbedtest.Size(60, 600)
		clients := tr.clients(t, 7, testbedtest.Redis(t))
		var wg sync.WaitGroup
		wg.Go(func() { // One holds for long, so that renewals are part of it.
			long := tr.load
			long.Rounds, long.Hold = 3, 2*ttl
			long.Run(t.Context(), clients[0])
		})
		tr.load.Run(t.Context(), clients[1:]...)
		wg.Wait()
	})
}

// TestHistoryOfScriptFlush makes the server forget the scripts all the time.
func TestHistoryOfScriptFlush(t *testing.T) {
	t.Parallel()
	histories(t, everything(), 3, false, func(t testing.TB, tr *trial) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin := redistest.Client(t, server.URL())
		tr.during(t, tr.clients(t, 5, server.URL()), func() {
			for end := time.Now().Add(time.Duration(testbedtest.Size(2, 20)) * time.Second); time.Now().Before(end); {
				if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
					t.Error(err)
				}
				sleep(t, tr.between(time.Millisecond, 10*time.Millisecond))
			}
		})
	})
}
