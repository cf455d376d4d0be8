package permits_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// An instance that comes while another has everything and wants more gets its share.
func TestNewcomerGetsItsShare(t *testing.T) {
	t.Parallel()
	for _, bound := range []int{64, 200} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				var (
					u   = new(usage)
					url = testbedtest.Redis(t)
					key = rand.Text()
				)
				first := join(t, url, key, bound)
				first.load(t, u, bound+16, 20*time.Millisecond)
				waitFor(t, "the first has all", func() bool { return first.Stats().InUse == bound })
				members := []*member{first}
				start := time.Now()
				for range 2 {
					m := join(t, url, key, bound)
					m.load(t, u, bound*2/3, 20*time.Millisecond)
					members = append(members, m)
				}
				share := bound / len(members)
				t.Cleanup(func() {
					for i, m := range members {
						t.Logf("%d: %+v", i, m.Stats())
					}
				})
				waitFor(t, "everybody has a share", func() bool {
					for _, m := range members {
						if m.Stats().Capacity < share {
							return false
						}
					}
					return true
				})
				t.Logf("shares after %v", time.Since(start))
				u.check(t, bound)
			})
		})
	}
}

// Permits that an instance no longer needs are free for others while it lives, and are not used by both.
func TestSurplusComesBack(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound = 64
		url, key := testbedtest.Redis(t), rand.Text()
		busy, idle := join(t, url, key, bound), join(t, url, key, bound)
		together(t, busy, idle)
		var releases []func()
		waitFor(t, "most permits", func() bool {
			if release, err := busy.Take(t.Context()); err == nil {
				releases = append(releases, release)
			}
			return len(releases) == bound-4
		})
		for _, release := range releases {
			release()
		}
		waitFor(t, "the release of the surplus", func() bool { return busy.Stats().Leased <= bound/2 })
		var had int
		take := func(m *member) {
			if _, err := m.Take(t.Context()); err == nil {
				had++
			}
		}
		for range bound / 2 { // at the moment of the return
			take(busy)
		}
		waitFor(t, "what was given back", func() bool {
			if take(idle); busy.Stats().InUse < busy.Stats().Leased { // it has taken slowly, and keeps its share
				take(busy)
			}
			return had >= bound
		})
		for range bound {
			take(idle)
		}
		if had > bound {
			t.Errorf("%d operations at once, of %d: what was given back is used twice", had, bound)
		}
	})
}

// A burst from nothing may be as large as the number of permits: no instance
// leases more of them than it needs.
func TestBurstOverAll(t *testing.T) {
	t.Parallel()
	const bound, members = 1000, 3
	url, key := testbedtest.Redis(t), rand.Text()
	var all []*member
	for range members {
		all = append(all, joinSteady(t, url, key, bound))
	}
	together(t, all...)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for at, m := range all {
		for i := range 1000 {
			if i%members != at {
				continue
			}
			wg.Go(func() {
				if _, err := m.Take(t.Context()); err != nil {
					refused.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d of 1000 operations were refused, of 1000 permits", n)
	}
}

// Few permits are leased one by one, and go round.
func TestSmallLimits(t *testing.T) {
	t.Parallel()
	for _, bound := range []int{2, 5} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				var (
					u    = new(usage)
					url  = testbedtest.Redis(t)
					key  = rand.Text()
					all  []*member
					done []*atomic.Int64
					ends []func()
				)
				for range 3 {
					all = append(all, join(t, url, key, bound))
				}
				together(t, all...)
				for _, m := range all {
					n, end := m.load(t, u, 8, 2*time.Millisecond)
					done, ends = append(done, n), append(ends, end)
				}
				waitFor(t, "everybody gets on", func() bool {
					for _, n := range done {
						if n.Load() < 100 {
							return false
						}
					}
					return true
				})
				for _, end := range ends {
					end()
				}
				u.check(t, bound)
				for _, n := range done {
					t.Logf("%d operations", n.Load())
				}
				waitFor(t, "no permit is kept", func() bool {
					leased := 0
					for _, m := range all {
						leased += m.Stats().Leased
					}
					return leased == 0 || bound >= 3 && leased <= 3
				})
			})
		})
	}
}

// The end of Run returns all permits at once, after the operations in flight have ended.
func TestEndOfRun(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound = 8
		url, key := testbedtest.Redis(t), rand.Text()
		m := joinWith(t, url, key, permits.Config{Permits: bound, TTL: ttl, Timeout: calm, Drain: maxWait})
		next := join(t, url, key, bound)
		together(t, m, next)
		release, last := m.take(t), m.take(t)
		waitFor(t, "the share of the other", func() bool { return next.Stats().Leased == bound/2 })
		m.stop()
		waitFor(t, "the end has begun", func() bool {
			release, err := m.Take(t.Context())
			if err == nil {
				release()
			}
			return errors.Is(err, permits.ErrClosed)
		})
		release()
		select {
		case <-m.done:
			t.Error("Run has not waited for an operation")
		default:
		}
		last()
		<-m.done
		waitFor(t, "the other is the only one", func() bool { return next.Stats().Instances == 1 })
		for range bound {
			next.take(t)
		}
		if s := m.Stats(); s.Leased != 0 || s.InUse != 0 {
			t.Errorf("%+v after the end", s)
		}
	})
}

// A number that is changed counts for those who run, with what they have.
func TestResize(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		url, key := testbedtest.Redis(t), rand.Text()
		m := join(t, url, key, 4)
		resize := func(n int) {
			t.Helper()
			waitFor(t, "an answer of the store", func() bool { return m.Resize(t.Context(), n) == nil })
		}
		releases := []func(){m.take(t), m.take(t), m.take(t), m.take(t)}
		resize(2)
		waitFor(t, "the new number", func() bool { s := m.Stats(); return s.Permits == 2 && s.Capacity <= 2 })
		for i, release := range releases[:2] {
			release()
			if _, err := m.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
				t.Errorf("Take = %v alongside %d of two", err, 3-i)
			}
		}
		releases[2]()
		waitFor(t, "a permit of two", func() bool {
			_, err := m.Take(t.Context())
			return err == nil
		})
		if _, err := m.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
			t.Errorf("the third of two: %v", err)
		}
		resize(5)
		waitFor(t, "more", func() bool {
			m.Take(t.Context())
			return m.Stats().InUse == 5
		})
	})
}

// Operations that a caller refuses for reasons of its own keep no permits from other instances.
func TestRefusalOfACallerIsNoNeed(t *testing.T) {
	t.Parallel()
	const bound = 16
	url, key := testbedtest.Redis(t), rand.Text()
	refuses, needs := join(t, url, key, bound), join(t, url, key, bound)
	together(t, refuses, needs)
	ctx, stop := context.WithCancel(t.Context())
	var refusals sync.WaitGroup
	defer refusals.Wait()
	defer stop()
	refusals.Go(func() {
		for ctx.Err() == nil {
			if err := refuses.Refuse(); !errors.Is(err, permits.ErrConcurrencyLimit) {
				t.Error(err)
			}
			<-time.After(10 * time.Millisecond)
		}
	})
	had := 0
	waitFor(t, "one has all permits", func() bool {
		if _, err := needs.Take(t.Context()); err == nil {
			had++
		}
		return had == bound
	})
	if n := refuses.Stats().Rejected; n == 0 {
		t.Error("no refusal is counted")
	}
}
