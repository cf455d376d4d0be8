package permits_test

import (
	"crypto/rand"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// burst takes the share of m, which must be there, and returns it.
func burst(t testing.TB, m *member, when string) {
	t.Helper()
	var releases []func()
	n := m.Stats().Permits / 2
	for i := range n {
		release, err := m.Take(t.Context())
		if err != nil {
			t.Errorf("%s: permit %d of %d: %v: %+v", when, i+1, n, err, m.Stats())
			break
		}
		releases = append(releases, release)
	}
	for _, release := range releases {
		release()
	}
}

// Instances that were idle when the store went away serve their shares at once, and while the
// store comes back.
func TestShareWithoutStore(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound = 64
		server, key := testbedtest.StartRedis(t, testbed.RedisConfig{}), rand.Text()
		members := []*member{join(t, server.URL(), key, bound), join(t, server.URL(), key, bound)}
		together(t, members...)
		for _, m := range members {
			waitFor(t, "it has its share", func() bool { return m.Stats().Capacity == bound/2 })
		}
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			burst(t, m, "the store has just gone")
		}
		for _, m := range members {
			waitFor(t, "it is on its own", func() bool { return m.Stats().Degraded })
			burst(t, m, "the store is unavailable")
			if s := m.Stats(); s.Unshared < bound/2 {
				t.Errorf("%d permits were given out without the store, want %d", s.Unshared, bound/2)
			}
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			waitFor(t, "the store has recovered", func() bool {
				burst(t, m, "the store comes back")
				return !m.Stats().Degraded || t.Failed()
			})
			burst(t, m, "the store has recovered")
		}
	})
}

// An instance that was paused for longer than its lease has its share again as soon as the others learn of it.
// Meanwhile the others can grow.
func TestShareAfterPause(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound = 16
		u := new(usage)
		url, key := testbedtest.Redis(t), rand.Text()
		c := count(t, u)
		paused := startChild(t, c, url, key, bound, bound/2)
		defer kill(t, paused)
		m := join(t, url, key, bound)
		m.load(t, new(usage), 2*bound, 2*time.Millisecond)
		waitFor(t, "they share", func() bool { return m.Stats().Instances == 2 && m.Stats().Capacity == bound/2 })
		if err := paused.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the other has all", func() bool { return m.Stats().Capacity == bound })
		if err := paused.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		woken := time.Now()
		waitFor(t, "they share again", func() bool { return m.Stats().Instances == 2 && m.Stats().Capacity == bound/2 })
		began := c.began.Load()
		waitFor(t, "the one that was paused goes on", func() bool { return c.began.Load() > began+100 })
		if d := time.Since(woken); d > ttl {
			t.Errorf("it goes on %v after its pause", d)
		} else {
			t.Logf("it goes on %v after its pause", d)
		}
	})
}
