package permits_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

const lossBound = 8

// fill has members use all permits of the key, as many each, until the test ends.
func fill(t testing.TB, members ...*member) {
	t.Helper()
	together(t, members...)
	for _, m := range members {
		for range lossBound / len(members) {
			m.take(t)
		}
	}
}

// gets returns how many permits m gets within a TTL.
func gets(t testing.TB, m *member) (n int) {
	t.Helper()
	for end := time.Now().Add(ttl); time.Now().Before(end) && n <= lossBound; {
		if _, err := m.Take(t.Context()); err == nil {
			n++
		} else {
			<-time.After(10 * time.Millisecond)
		}
	}
	return n
}

// A store that has lost its data is first asked by an instance that has just started. It gets nothing
// while the others use all permits and the store does not know that yet.
func TestNewcomerAfterLossOfData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		url, key := testbedtest.Redis(t), rand.Text()
		others := []*member{join(t, url, key, lossBound), join(t, url, key, lossBound)}
		fill(t, others...)
		if err := others[0].rdb.Del(t.Context(), "shop:permits:{"+key+"}").Err(); err != nil {
			t.Fatal(err)
		}
		if n := gets(t, join(t, url, key, lossBound)); n > 0 {
			t.Errorf("a newcomer has %d permits while the others use all %d", n, lossBound)
		}
	})
}

// A store that was away is first asked by an instance that has started meanwhile, and serves one permit
// by itself.
func TestNewcomerAfterOutage(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server, key := testbedtest.StartRedis(t, testbed.RedisConfig{}), rand.Text()
		proxy, own := testbedtest.StartProxy(t, server.Addr()), testbedtest.StartProxy(t, server.Addr())
		others := []*member{join(t, "redis://"+proxy.Addr(), key, lossBound), join(t, "redis://"+proxy.Addr(), key, lossBound)}
		fill(t, others...)
		proxy.BlackHole()
		own.BlackHole()
		newcomer := join(t, "redis://"+own.Addr(), key, lossBound)
		waitFor(t, "everybody is on its own", func() bool {
			return newcomer.Stats().Degraded && others[0].Stats().Leased == 0 && others[1].Stats().Leased == 0
		})
		if err := own.Pass(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "it has asked", func() bool { return !newcomer.Stats().Degraded })
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		if n := gets(t, newcomer); n > 1 {
			t.Errorf("a newcomer has %d permits while the others use all %d", n, lossBound)
		}
	})
}

// expired reports whether the store has no valid lease of the key.
func expired(t testing.TB, rdb redis.UniversalClient, key string) bool {
	t.Helper()
	p := rdb.TxPipeline()
	now, leases := p.Time(t.Context()), p.HVals(t.Context(), "shop:permits:{"+key+"}")
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Val() {
		if parts := strings.Split(lease, ":"); len(parts) == 4 {
			if end, err := strconv.ParseInt(parts[2], 10, 64); err != nil || end > now.Val().UnixMilli() {
				return false
			}
		}
	}
	return true
}

// A store that was away is first asked by an instance that has started since, and has never been without it.
func TestNewcomerIsFirstAfterOutage(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server, key := testbedtest.StartRedis(t, testbed.RedisConfig{}), rand.Text()
		proxy := testbedtest.StartProxy(t, server.Addr())
		others := []*member{join(t, "redis://"+proxy.Addr(), key, lossBound), join(t, "redis://"+proxy.Addr(), key, lossBound)}
		fill(t, others...)
		proxy.BlackHole()
		store := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer store.Close()
		waitFor(t, "the others are on their own", func() bool {
			return others[0].Stats().Leased == 0 && others[1].Stats().Leased == 0 && expired(t, store, key)
		})
		// Growth stops for a Timeout: this one is long enough for a busy machine to call again.
		newcomer := joinWith(t, server.URL(), key, permits.Config{Permits: lossBound, TTL: 4 * ttl, Timeout: ttl, Drain: time.Second})
		waitFor(t, "it has asked", func() bool { return !expired(t, store, key) })
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		if n := gets(t, newcomer); n > 0 {
			t.Errorf("a newcomer has %d permits while the others use all %d", n, lossBound)
		}
	})
}

// A store that was away is first asked by an instance that was paused all the time.
func TestPausedIsFirstAfterOutage(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server, key, u := testbedtest.StartRedis(t, testbed.RedisConfig{}), rand.Text(), new(usage)
		proxy := testbedtest.StartProxy(t, server.Addr())
		// Growth stops for the Timeout of the child, which is the longer one.
		other := joinWith(t, "redis://"+proxy.Addr(), key, permits.Config{Permits: lossBound, TTL: ttl, Timeout: calm / 6, Drain: time.Second})
		for range lossBound / 2 {
			other.take(t)
		}
		paused := startChild(t, count(t, u), server.URL(), key, lossBound, lossBound)
		defer kill(t, paused)
		waitFor(t, "they share", func() bool { s := other.Stats(); return s.Instances == 2 && s.Capacity == lossBound/2 })
		if err := paused.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		proxy.BlackHole()
		store := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer store.Close()
		waitFor(t, "the other is on its own", func() bool { return other.Stats().Leased == 0 && expired(t, store, key) })
		if err := paused.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "it has asked", func() bool { return !expired(t, store, key) })
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "both have leases", func() bool { s := other.Stats(); return s.Instances == 2 && s.Leased == lossBound/2 })
		before := u.total.Load()
		waitFor(t, "the one that was paused goes on", func() bool { return u.total.Load() > before+100 })
		u.check(t, lossBound/2)
	})
}

// If all instances have ended and one starts, its first operations wait for permits, and none is refused.
func TestRestartOfAll(t *testing.T) {
	t.Parallel()
	key, cfg := rand.Text(), permits.Config{Permits: lossBound, TTL: steady, Timeout: steady / 4, Drain: time.Second}
	url := testbedtest.Redis(t) + unhurried
	before := joinWith(t, url, key, cfg)
	before.take(t)()
	before.stop()
	<-before.done
	m := joinWith(t, url, key, cfg)
	var wg sync.WaitGroup
	for range lossBound {
		wg.Go(func() {
			if _, err := m.Take(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// sent is a hook that passes on what a client has sent.
type sent chan []any

func (s sent) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	err := send(ctx, cmds)
	if err == nil && cmds[0].Name() == "evalsha" {
		select {
		case s <- cmds[0].Args():
		default:
		}
	}
	return err
}

// A call that Redis executes after its successors, as its connection was slow, takes nothing from an
// instance that uses what it was granted since.
func TestLateCallChangesNothing(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const used = lossBound - 2
		url, key := testbedtest.Redis(t), rand.Text()
		m, other := join(t, url, key, lossBound), join(t, url, key, lossBound)
		together(t, m, other)
		calls := make(sent, 1)
		m.rdb.AddHook(testbedtest.RoundTrips(calls.roundTrip))
		late := <-calls
		for range used {
			m.take(t)
		}
		p := m.rdb.TxPipeline()
		p.Do(t.Context(), late...)
		leases := p.HVals(t.Context(), "shop:permits:{"+key+"}")
		p.Exec(t.Context())
		if err := leases.Err(); err != nil {
			t.Fatal(err)
		}
		most := 0
		for _, lease := range leases.Val() {
			granted, _, _ := strings.Cut(lease, ":")
			n, _ := strconv.Atoi(granted)
			if strings.Contains(lease, ":") {
				most = max(most, n)
			}
		}
		if most < used {
			t.Errorf("of %d permits in use %d are leased after a late call: %v", used, most, leases.Val())
		}
	})
}
