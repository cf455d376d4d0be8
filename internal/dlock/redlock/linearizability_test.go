package redlock_test

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// faulty is a trial with faults. Its load outlasts the faults at full size too. In a small run all may go unnoticed.
func faulty(keys int) dlocktest.TrialConfig {
	return dlocktest.TrialConfig{
		TTL: ttl, Keys: keys, Faulty: true, SplitVotes: true, Unnoticed: testbedtest.Size(0, 1) == 0,
		Limit: time.Duration(testbedtest.Size(1, 5)) * time.Minute,
	}
}

// clients returns n clients with connections of their own.
func (s servers) clients(t testing.TB, tr *dlocktest.Trial, n int) []*dlocktest.HistoryClient {
	t.Helper()
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = tr.Locker(locker(t, s.urls(), redlock.Config{TTL: ttl}))
	}
	return all
}

func harm(t testing.TB, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		dlocktest.RunTrial(t, dlocktest.TrialConfig{TTL: ttl, Keys: 3, SplitVotes: true}, func(t testing.TB, tr *dlocktest.Trial) {
			tr.WithoutFaults(t, s.clients(t, tr, 5), testbedtest.Size(40, 400), testbedtest.Size(1, 3))
		})
	})
}

// TestHistoryOfLostReplies loses replies of every kind after a server has executed.
func TestHistoryOfLostReplies(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
			var (
				clients []*dlocktest.HistoryClient
				proxies []*testbed.Proxy
			)
			for range 4 {
				l, own := s.behind(t, redlock.Config{TTL: ttl})
				clients, proxies = append(clients, tr.Locker(l)), append(proxies, own...)
			}
			tr.LoseReplies(t, clients, proxies, testbedtest.Size(60, 600), func(int, *testbed.Proxy) {
				for range 4 { // two of a client, now and then, so that it has no majority
					proxies[tr.Random.IntN(len(proxies))].DropReply("evalsha")
				}
			})
		})
	})
}

// TestHistoryOfBlackHoles cuts clients off from a random number of servers, for less and for more than a TTL. It does
// so at random phases of their renewals and waits. Each holder must be notified before the next grant, whatever
// arrives late.
func TestHistoryOfBlackHoles(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		dlocktest.RunTrial(t, faulty(4), func(t testing.TB, tr *dlocktest.Trial) {
			clients := s.clients(t, tr, 2)
			var links [][]*testbed.Proxy
			for range 4 {
				l, proxies := s.behind(t, redlock.Config{TTL: ttl})
				clients, links = append(clients, tr.Locker(l)), append(links, proxies)
			}
			tr.BlackHoles(t, clients, links, testbedtest.Size(2, 30))
		})
	})
}

// TestHistoryOfFrozenServers pauses one server of five, or two. Nobody notices.
func TestHistoryOfFrozenServers(t *testing.T) {
	t.Parallel()
	for frozen, name := range []string{1: "one", 2: "two"} {
		if frozen == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				s := ready(t, 5)
				for _, server := range s[:frozen] {
					harm(t, server.Pause)
				}
				dlocktest.RunTrial(t, dlocktest.TrialConfig{TTL: ttl, Keys: 3, SplitVotes: true}, func(t testing.TB, tr *dlocktest.Trial) {
					tr.Load.Rounds = testbedtest.Size(20, 300)
					tr.Load.Run(t.Context(), s.clients(t, tr, 5)...)
				})
			})
		})
	}
}

// TestHistoryOfServersThatStall pauses up to three servers of five at a time, for less and for more than a TTL. Keys
// are held meanwhile, and some holders lose their majority.
func TestHistoryOfServersThatStall(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
			tr.Load.Hold, tr.Least = ttl/2, 20
			tr.During(t, s.clients(t, tr, 5), func() {
				for i := range testbedtest.Size(3, 20) {
					frozen := tr.Random.Perm(len(s))[:3-i%3]
					for _, at := range frozen {
						harm(t, s[at].Pause)
					}
					dlocktest.Pace(t, tr.Between(ttl/4, 5*ttl/4))
					for _, at := range frozen {
						harm(t, s[at].Resume)
					}
					dlocktest.Pace(t, tr.Between(0, ttl/8))
				}
			})
		})
	})
}

// TestHistoryOfServersThatLoseTheirData kills one server after the other; each restarts empty. There are never two
// concurrent holders.
func TestHistoryOfServersThatLoseTheirData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		cfg := faulty(3)
		cfg.Unnoticed = true
		dlocktest.RunTrial(t, cfg, func(t testing.TB, tr *dlocktest.Trial) {
			tr.Load.Hold, tr.Least = ttl/2, 20
			// A key that was granted while two servers settled can lose the majority to a third. So even a fast
			// release may find nothing.
			tr.TTL = 1
			tr.During(t, s.clients(t, tr, 5), func() {
				for i := range testbedtest.Size(4, 30) {
					server := s[i%len(s)]
					harm(t, server.Kill)
					dlocktest.Pace(t, tr.Between(0, ttl/8))
					harm(t, func() error { return server.Restart(t.Context()) })
					dlocktest.Pace(t, tr.Between(ttl/2, ttl)) // before it has settled, every other time
				}
			})
		})
	})
}

// TestHistoryOfServersThatKeepTheirData kills one server after the other, or two at once;
// each restarts with all that it has acknowledged, and votes at once.
func TestHistoryOfServersThatKeepTheirData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := settled(t, start(t, 5, testbed.RedisConfig{AppendOnly: true}))
		cfg := faulty(3)
		cfg.Unnoticed = true
		dlocktest.RunTrial(t, cfg, func(t testing.TB, tr *dlocktest.Trial) {
			tr.Load.Hold, tr.Least = ttl/2, 20
			tr.During(t, s.clients(t, tr, 5), func() {
				for i := range testbedtest.Size(4, 30) {
					killed := tr.Random.Perm(len(s))[:1+i%2]
					for _, at := range killed {
						harm(t, s[at].Kill)
					}
					dlocktest.Pace(t, tr.Between(0, ttl/8))
					for _, at := range killed {
						harm(t, func() error { return s[at].Restart(t.Context()) })
					}
					dlocktest.Pace(t, tr.Between(0, ttl/3))
				}
			})
		})
	})
}

// A majority is killed while a key is held, and restarts with its data. It grants that key to nobody else before its
// lease is over.
func TestMajorityThatKeepsItsData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := settled(t, start(t, 3, testbed.RedisConfig{AppendOnly: true}))
		l, key := locker(t, s.urls(), redlock.Config{TTL: 10 * ttl}), rand.Text()
		lease := take(t, l, key)
		for _, server := range s {
			harm(t, server.Kill)
		}
		for _, server := range s {
			harm(t, func() error { return server.Restart(t.Context()) })
		}
		other := locker(t, s.urls(), redlock.Config{TTL: 10 * ttl})
		testbedtest.Eventually(t, "an answer", func() bool {
			next, err := other.TryAcquire(t.Context(), key)
			if err == nil {
				t.Errorf("granted with fence %+v alongside %+v", next.Fence(), lease.Fence())
			}
			return err == nil || errors.Is(err, dlock.ErrHeld)
		})
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
		take(t, other, key).Release(t.Context())
	})
}

const holderServers = "SHOP_TEST_HOLDER_REDLOCK"

// TestHolderProcess is no test: it is what StartHolder runs.
func TestHolderProcess(t *testing.T) {
	urls := os.Getenv(holderServers)
	if urls == "" {
		return
	}
	dlocktest.ServeHolder(t, locker(t, strings.Split(urls, ","), redlock.Config{TTL: ttl}))
}

// TestHistoryWithPausedHolders stops a process for longer than the TTL, wherever it is.
// It resumes and considers leases valid that others have taken meanwhile; it must find out.
func TestHistoryWithPausedHolders(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
			far := dlocktest.StartHolder(t, "TestHolderProcess", 8*ttl, holderServers+"="+strings.Join(s.urls(), ","))
			tr.PauseHolder(t, far, s.clients(t, tr, 2), testbedtest.Size(2, 20))
		})
	})
}
