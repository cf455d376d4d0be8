package dlocktest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/platform/testbed"
)

// TrialConfig says what a [Trial] is about.
type TrialConfig struct {
	TTL    time.Duration // of the clients
	Keys   int           // that they contend for
	Faulty bool          // whether something is harmed
	Limit  time.Duration // how long the load may run at most; 0 means a minute

	// Model is what the history is held against. Nil means LockModel, and that no
	// holder is notified of its loss after the next grant.
	Model *porcupine.Model

	SplitVotes bool // see [History]
	Unnoticed  bool // the faults may go unnoticed, so that there need not be losses or unknown outcomes
}

// Trial records the history of a lock: clients take and release keys while a fault harms them, the network or the
// store.
type Trial struct {
	*History

	Load   Load
	Random *rand.Rand // for the goroutine of the test
	Least  int        // grants below which the history proves nothing; 50 unless f of RunTrial changes it

	cfg TrialConfig
}

// RunTrial runs f, and fails the test unless the history is in order afterwards. On a busy machine, requests can time
// out without a fault, and a fault may hit no request. Then the trial starts again, twice at most.
func RunTrial(t testing.TB, cfg TrialConfig, f func(t testing.TB, tr *Trial)) {
	t.Helper()
	var tr *Trial
	for range 3 {
		tr = newTrial(t, cfg)
		f(t, tr)
		if (tr.Disruptions() > 0) == cfg.Faulty || cfg.Unnoticed {
			break
		}
		t.Logf("%d losses and unknown outcomes", tr.Disruptions())
	}
	tr.CheckFences(t)
	if n := tr.Disruptions(); n > 0 && !cfg.Faulty || n == 0 && cfg.Faulty && !cfg.Unnoticed {
		t.Errorf("%d losses and unknown outcomes", n)
	}
	if cfg.Model != nil {
		tr.Check(t, *cfg.Model)
	} else {
		tr.Check(t, LockModel())
		tr.CheckLossBeforeNextGrant(t)
	}
	if n := tr.Grants(); n < tr.Least {
		t.Errorf("only %d grants: that proves nothing", n)
	}
}

func newTrial(t testing.TB, cfg TrialConfig) *Trial {
	t.Helper()
	tr := &Trial{History: NewHistory(), Least: 50, cfg: cfg}
	if cfg.Faulty {
		tr.Faulty, tr.TTL = true, cfg.TTL
	}
	tr.SplitVotes = cfg.SplitVotes
	seed := Seed(t)
	tr.Random = rand.New(rand.NewPCG(seed, seed))
	tr.Load = Load{Keys: HistoryKeys(cfg.Keys), Rounds: 1 << 30, MaxWait: 10 * cfg.TTL, Seed: seed}
	return tr
}

// During runs the load while harm does its work, and for as long as there are fewer
// than Least grants. Afterwards no client may wait for much longer than it takes that
// what nobody holds expires.
func (tr *Trial) During(t testing.TB, clients []*HistoryClient, harm func()) {
	t.Helper()
	limit := tr.cfg.Limit
	if limit == 0 {
		limit = time.Minute
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { tr.Load.Run(ctx, clients...) })
	harm()
	for end := time.Now().Add(30 * time.Second); tr.Grants() < tr.Least && time.Now().Before(end); { // a busy machine takes longer
		pause(ctx, tr.cfg.TTL/100)
	}
	stop()
	stopped := time.Now()
	wg.Wait()
	if d, most := time.Since(stopped), 3*tr.cfg.TTL+4*time.Second; d > most {
		t.Errorf("a client waited for another %v, with nobody left in its way", d)
	}
}

// Between returns a random duration. It is for the goroutine of the test.
func (tr *Trial) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(tr.Random.Int64N(int64(high-low)))
}

// Pace lets d pass between two steps of harm. It decides nothing.
func Pace(t testing.TB, d time.Duration) {
	t.Helper()
	pause(t.Context(), d)
}

// WithoutFaults has clients take keys for a number of rounds each. The first one holds for two
// TTLs, long times, so that renewals are part of it.
func (tr *Trial) WithoutFaults(t testing.TB, clients []*HistoryClient, rounds, long int) {
	t.Helper()
	tr.Load.Rounds = rounds
	var wg sync.WaitGroup
	wg.Go(func() {
		slow := tr.Load
		slow.Rounds, slow.Hold = long, 2*tr.cfg.TTL
		slow.Run(t.Context(), clients[0])
	})
	tr.Load.Run(t.Context(), clients[1:]...)
	wg.Wait()
}

// LoseReplies has the proxies of clients lose replies of the store to the requests that drop chooses.
// It does so the given number of times, and until ten replies were lost.
func (tr *Trial) LoseReplies(t testing.TB, clients []*HistoryClient, proxies []*testbed.Proxy, times int, drop func(n int, p *testbed.Proxy)) {
	t.Helper()
	lost := func() (n int) {
		for _, p := range proxies {
			n += p.Dropped()
		}
		return n
	}
	const least = 10
	tr.During(t, clients, func() {
		end := time.Now().Add(30 * time.Second) // a busy machine sends few requests
		for n := 0; n < times || lost() < least && time.Now().Before(end); n++ {
			drop(n, proxies[tr.Random.IntN(len(proxies))])
			Pace(t, tr.Between(10*time.Millisecond, 60*time.Millisecond))
		}
	})
	if n := lost(); n < least {
		t.Errorf("only %d replies were lost: that proves nothing", n)
	}
}

// BlackHoles cuts clients off at random phases of their renewals and waits, for less and for
// more than a TTL, a number of times each. The links of a client are its connections, of
// which a random number is cut. Each holder must know before the next one is in,
// whatever arrives late.
func (tr *Trial) BlackHoles(t testing.TB, clients []*HistoryClient, links [][]*testbed.Proxy, times int) {
	t.Helper()
	ttl := tr.cfg.TTL
	tr.Load.Hold, tr.Least = ttl, 10
	tr.During(t, clients, func() {
		var wg sync.WaitGroup
		for i, proxies := range links {
			random := rand.New(rand.NewPCG(tr.Load.Seed, uint64(i)))
			wg.Go(func() {
				for range times {
					Pace(t, time.Duration(random.Int64N(int64(ttl/2))))
					for _, at := range random.Perm(len(proxies))[:1+random.IntN(len(proxies))] {
						proxies[at].BlackHole()
					}
					Pace(t, ttl/4+time.Duration(random.Int64N(int64(5*ttl/4))))
					for _, p := range proxies {
						harm(t, p.Pass)
					}
				}
			})
		}
		wg.Wait()
	})
}

// PauseHolder pauses the process of three of the clients for longer than the TTL, wherever it is,
// a number of times. It resumes and considers leases valid that others have taken meanwhile; it must
// find out.
func (tr *Trial) PauseHolder(t testing.TB, far *Holder, others []*HistoryClient, times int) {
	t.Helper()
	ttl := tr.cfg.TTL
	tr.Load.Hold, tr.Least = ttl/2, 10
	paused := []*HistoryClient{tr.Locker(far), tr.Locker(far), tr.Locker(far)}
	tr.During(t, append(others, paused...), func() {
		for range times {
			Pace(t, tr.Between(0, ttl/2))
			for end := time.Now().Add(10 * ttl); !far.Holds() && time.Now().Before(end); {
				Pace(t, ttl/1000)
			}
			tr.Pause(func() {
				harm(t, func() error { return testbed.Suspend(far.Process) })
				Pace(t, ttl+tr.Between(ttl/5, ttl/2))
				harm(t, func() error { return testbed.Continue(far.Process) })
			}, paused...)
		}
	})
}

func harm(t testing.TB, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}
