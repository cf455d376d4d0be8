package dlocktest

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
)

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

// LoseReplies has the proxies of clients lose replies of the store. drop chooses the request. It is called times
// times, and then until ten replies were lost.
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
