package permits_test

import (
	"crypto/rand"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// outage is three members under more load than there are permits, on a server
// of their own.
type outage struct {
	server  *testbed.Redis
	u       *usage
	members []*member
	done    []*atomic.Int64
	ends    []func()
}

const outageBound = 24

func startOutage(t testing.TB, d time.Duration) *outage {
	t.Helper()
	o := &outage{server: testbedtest.StartRedis(t, testbed.RedisConfig{}), u: new(usage)}
	key := rand.Text()
	for range 3 {
		o.members = append(o.members, join(t, o.server.URL(), key, outageBound))
	}
	together(t, o.members...)
	for i, m := range o.members {
		goroutines := outageBound / 3
		if i == 0 {
			goroutines = outageBound // one wants all, the others no more than their share
		}
		n, end := m.load(t, o.u, goroutines, d)
		o.done, o.ends = append(o.done, n), append(o.ends, end)
	}
	waitFor(t, "everybody works", func() bool {
		for _, m := range o.members {
			if m.Stats().Leased < outageBound/6 {
				return false
			}
		}
		return true
	})
	return o
}

// goesOn fails unless each member does operations without the store.
func (o *outage) goesOn(t testing.TB) {
	t.Helper()
	for i, m := range o.members {
		waitFor(t, "the leases are lost", func() bool { s := m.Stats(); return s.Degraded && s.Leased == 0 })
		if s := m.Stats(); s.Capacity > outageBound/len(o.members) {
			t.Errorf("on its own an instance serves %d of %d: %+v", s.Capacity, outageBound, s)
		}
		before := o.done[i].Load()
		waitFor(t, "it goes on", func() bool { return o.done[i].Load() > before+10 })
	}
}

// isOver waits until everybody leases again.
func (o *outage) isOver(t testing.TB) {
	t.Helper()
	for i, m := range o.members {
		waitFor(t, "the permits are leased again", func() bool { s := m.Stats(); return !s.Degraded && s.Leased > 0 && s.Capacity <= s.Leased })
		before := o.done[i].Load()
		waitFor(t, "it works", func() bool { return o.done[i].Load() > before+10 })
	}
}

func (o *outage) end(t testing.TB) {
	t.Helper()
	for _, end := range o.ends {
		end()
	}
	o.u.check(t, outageBound)
	if most := o.u.most.Load(); most < outageBound/2 {
		t.Errorf("at most %d operations at once: the load does not try the bound", most)
	}
}

// A store that stalls for longer than the TTL comes back with nothing held, and
// whoever asks first could have everything.
func TestBoundHoldsOverStall(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		o := startOutage(t, 300*time.Millisecond) // what one serves alone is still there when another leases
		if err := o.server.Pause(); err != nil {
			t.Fatal(err)
		}
		o.goesOn(t)
		if err := o.server.Resume(); err != nil {
			t.Fatal(err)
		}
		o.isOver(t)
		o.end(t)
	})
}

// A store that is shut down comes back empty.
func TestBoundHoldsOverShutdown(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		o := startOutage(t, 5*time.Millisecond)
		if err := o.server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.goesOn(t)
		if err := o.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.isOver(t)
		o.end(t)
	})
}

// A store that loses its data and recovers at once forgets all leases.
func TestBoundHoldsOverLossOfData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		o := startOutage(t, 5*time.Millisecond)
		if err := o.server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := o.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range o.members {
			before := o.done[i].Load()
			waitFor(t, "it goes on", func() bool { return o.done[i].Load() > before+10 })
		}
		o.isOver(t)
		o.end(t)
	})
}

// An instance that starts while the store is away serves one operation at a time, as it does not know
// how many others there are. It does not hang.
func TestStartWithoutStore(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		m := join(t, server.URL(), rand.Text(), 8)
		start := time.Now()
		release, err := m.Take(t.Context())
		if err != nil {
			t.Fatalf("the first operation: %v", err)
		}
		if _, err := m.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
			t.Errorf("the second: %v, want ErrConcurrencyLimit", err)
		}
		release()
		if d := time.Since(start); d > 10*ttl {
			t.Errorf("Take took %v", d)
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "a permit", func() bool {
			_, err := m.Take(t.Context())
			return err == nil
		})
	})
}

// TestRefusedReturnIsRepeated stops an instance while Redis refuses connections for a moment.
func TestRefusedReturnIsRepeated(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server, err := url.Parse(testbedtest.Redis(t))
		if err != nil {
			t.Fatal(err)
		}
		key, proxy := rand.Text(), testbedtest.StartProxy(t, server.Host)
		server.Host = proxy.Addr()
		m := joinSteady(t, server.String(), key, 4)
		m.take(t)()
		leases := func() int {
			n := 0
			for name := range m.rdb.HGetAll(t.Context(), "shop:permits:{"+key+"}").Val() {
				if name[0] != ':' {
					n++
				}
			}
			return n
		}
		waitFor(t, "a lease", func() bool { return leases() == 1 })
		proxy.Refuse()
		m.stop()
		time.Sleep(100 * time.Millisecond) // enough for a first attempt
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		<-m.done
		waitFor(t, "an answer", func() bool { return m.rdb.Ping(t.Context()).Err() == nil })
		if leases() != 0 {
			t.Error("the lease of an instance that has ended is still there")
		}
	})
}

// An instance that alone was cut off serves at most its share, and after it recovers no more than the others have left.
func TestCutOffInstanceServesItsShare(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound = 16
		server, key := testbedtest.StartRedis(t, testbed.RedisConfig{}), rand.Text()
		proxy := testbedtest.StartProxy(t, server.Addr())
		m, other := join(t, "redis://"+proxy.Addr(), key, bound), join(t, server.URL(), key, bound)
		together(t, m, other)
		for range bound / 2 {
			waitFor(t, "a permit of its share", func() bool {
				_, err := m.Take(t.Context())
				return err == nil
			})
		}
		proxy.BlackHole()
		for range bound {
			waitFor(t, "a permit that was of the other", func() bool {
				_, err := other.Take(t.Context())
				return err == nil
			})
		}
		waitFor(t, "it is on its own", func() bool { s := m.Stats(); return s.Degraded && s.Leased == 0 })
		if s := m.Stats(); s.Capacity > bound/2 {
			t.Errorf("cut off it serves more than a share: %+v", s)
		}
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "recovery", func() bool { return !m.Stats().Degraded })
		if s := m.Stats(); s.Capacity > 0 {
			t.Errorf("the other has all permits, and it serves some: %+v", s)
		}
	})
}
