package ratelimit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/httpapi/ratelimit"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// maxWait is a Timeout, or a wait, that a busy machine keeps.
const maxWait = 2 * time.Minute

// unhurried ends the address of a server that may take its time.
const unhurried = "?read_timeout=2m"

func TestMain(m *testing.M) { testbedtest.Main(m) }

func rates(t testing.TB, url string, cfg ratelimit.Config) *ratelimit.Limiter {
	t.Helper()
	rdb, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	r, err := ratelimit.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func allow(t testing.TB, r *ratelimit.Limiter, key string) ratelimit.Verdict {
	t.Helper()
	v, err := r.Allow(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The burst is over all instances, and of each key.
func TestRateIsShared(t *testing.T) {
	t.Parallel()
	const burst, instances = 20, 3
	url, key := testbedtest.Redis(t)+unhurried, rand.Text()
	var (
		wg      sync.WaitGroup
		allowed atomic.Int64
		all     []*ratelimit.Limiter
	)
	for range instances {
		all = append(all, rates(t, url, ratelimit.Config{Rate: 1, Period: time.Hour, Burst: burst, Timeout: maxWait}))
	}
	for _, r := range all {
		for range 2 * burst {
			wg.Go(func() {
				v, err := r.Allow(t.Context(), key)
				switch {
				case err != nil || v.Local || v.Limit != burst:
					t.Errorf("%+v, %v", v, err)
				case v.Allowed:
					allowed.Add(1)
				case v.RetryAfter <= 0 || v.Remaining != 0 || v.ResetAfter < v.RetryAfter:
					t.Errorf("refused with %+v", v)
				}
			})
		}
	}
	wg.Wait()
	if n := allowed.Load(); n != burst {
		t.Errorf("%d of a burst of %d were allowed", n, burst)
	}
	if v := allow(t, all[0], key+" of another"); !v.Allowed || v.Remaining != burst-1 || v.RetryAfter != 0 {
		t.Errorf("another key: %+v", v)
	}
}

// A key may continue after the delay of its verdict.
func TestRateRefills(t *testing.T) {
	t.Parallel()
	r, key := rates(t, testbedtest.Redis(t)+unhurried, ratelimit.Config{Rate: 5, Burst: 1, Timeout: maxWait}), rand.Text()
	allow(t, r, key)
	v := allow(t, r, key)
	for end := time.Now().Add(maxWait); !v.Allowed; v = allow(t, r, key) {
		if time.Now().After(end) {
			t.Fatal("never allowed again")
		}
		<-time.After(v.RetryAfter)
	}
}

// While Redis is unavailable each instance decides alone, at once, and within a bounded memory.
func TestRateWithoutRedis(t *testing.T) {
	t.Parallel()
	const burst, instances, keys, limit = 8, 2, 50, 500 * time.Millisecond
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	r := rates(t, server.URL(), ratelimit.Config{
		Rate: 1, Period: time.Hour, Burst: burst, Timeout: limit, Cooldown: 3 * time.Second, MaxKeys: keys,
		Instances: func() int { return instances },
	})
	key := rand.Text()
	// By another key: what a busy Redis did not answer in time is decided here, and used up.
	testbedtest.Eventually(t, "a verdict of Redis", func() bool { return !allow(t, r, key+" of before").Local })
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	waited, allowed := 0, 0
	for range burst {
		start := time.Now()
		v := allow(t, r, key)
		if time.Since(start) >= limit {
			waited++
		}
		if !v.Local {
			t.Errorf("%+v from a server that is stopped", v)
		}
		if v.Allowed {
			allowed++
		} else if v.RetryAfter <= 0 || v.Remaining != 0 {
			t.Errorf("refused with %+v", v)
		}
	}
	if allowed != burst/instances {
		t.Errorf("%d were allowed, want the part of one instance, %d", allowed, burst/instances)
	}
	if waited > burst/2 { // one waits, and after a cooldown another; a machine that is paused makes one as slow
		t.Errorf("%d of %d verdicts without Redis have waited for it", waited, burst)
	}
	for i := range 10 * keys {
		allow(t, r, key+strconv.Itoa(i))
		if n := r.Buckets(); n > keys {
			t.Fatalf("%d buckets, at most %d are allowed", n, keys)
		}
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	testbedtest.Eventually(t, "a verdict of Redis", func() bool { return !allow(t, r, rand.Text()).Local })
}

func TestLocalRates(t *testing.T) {
	t.Parallel()
	r, err := ratelimit.New(nil, ratelimit.Config{Rate: 2, Period: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		if v := allow(t, r, "one"); v.Allowed != want || !v.Local || v.Limit != 2 {
			t.Errorf("operation %d: %+v", i, v)
		}
	}
	if v := allow(t, r, "another"); !v.Allowed {
		t.Errorf("%+v", v)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller has left")
	cancel(cause)
	if _, err := r.Allow(ctx, "one"); !errors.Is(err, cause) {
		t.Errorf("Allow with an ended context: %v", err)
	}
	if n := r.Refused(); n != 1 {
		t.Errorf("%d operations were refused, want 1", n)
	}
}

// A client that repeats commands would count one operation twice.
func TestRatesRefuseClients(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	if _, err := ratelimit.New(rdb, ratelimit.Config{Rate: 1}); err == nil {
		t.Error("a client that repeats commands is accepted")
	}
	if _, err := ratelimit.New(nil, ratelimit.Config{}); err == nil {
		t.Error("a rate of nothing is accepted")
	}
}

// slowFirst counts round trips, and keeps the first one until it may go.
type slowFirst struct {
	sent    atomic.Int64
	begun   chan struct{} // closed when the first one comes
	release chan struct{}
}

func (h *slowFirst) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	if h.sent.Add(1) == 1 {
		close(h.begun)
		<-h.release
	}
	return send(ctx, cmds)
}

var errGone = errors.New("gone")

// Those who ask while a round trip is under way share the next one; each gets its own verdict.
func TestRatesShareRoundTrips(t *testing.T) {
	t.Parallel()
	const callers = 600
	rdb, err := redisclient.New(testbedtest.Redis(t) + unhurried)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	h, mine := &slowFirst{begun: make(chan struct{}), release: make(chan struct{})}, rand.Text()
	r, err := ratelimit.New(rdb, ratelimit.Config{Rate: 1, Period: time.Hour, Burst: 2, Timeout: maxWait})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < callers; i += 2 { // every other one has used up half of what it has
		allow(t, r, mine+strconv.Itoa(i))
	}
	rdb.AddHook(testbedtest.RoundTrips(h.roundTrip))
	var begun atomic.Int64
	var all sync.WaitGroup
	ask := func(key string, left int) {
		begun.Add(1)
		if v, err := r.Allow(t.Context(), key); err != nil || !v.Allowed || v.Remaining != left || v.Local {
			t.Errorf("%s: %+v, %v; want %d left", key, v, err, left)
		}
	}
	all.Go(func() { ask(mine+"first", 1) })
	<-h.begun
	for i := range callers {
		all.Go(func() { ask(mine+strconv.Itoa(i), i%2) })
	}
	testbedtest.Eventually(t, "all to ask", func() bool { return begun.Load() == 1+callers })
	gone, leave := context.WithCancelCause(t.Context())
	leave(errGone)
	if _, err := r.Allow(gone, "gone"); !errors.Is(err, errGone) {
		t.Errorf("a caller that has gone gets %v", err)
	}
	close(h.release)
	all.Wait()
	if n := h.sent.Load(); n > callers/4 { // a few may not have got further than to begin
		t.Errorf("%d pipelines for %d callers", n, callers)
	}
}
