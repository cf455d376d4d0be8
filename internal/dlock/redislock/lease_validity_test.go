package redislock_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestValidityOfANotifiedGrant sends grants by hand to a waiter that has lost every other contact. A grant is valid
// for as long as Redis keeps it, counted from the last request that Redis had received, and not from the
// notification.
func TestValidityOfANotifiedGrant(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const pushed = 3 * time.Second // what Redis keeps a notified grant for, however long the TTL is
		for _, late := range []bool{false, true} {
			for !checkValidity(t, late, pushed) {
				t.Log("the machine was too slow for it to be in time: once more")
			}
		}
	})
}

// checkValidity is one attempt. It reports false if that was too slow to prove anything.
func checkValidity(t testing.TB, late bool, pushed time.Duration) (said bool) {
	t.Helper()
	var cut atomic.Bool
	rdb := redistest.Client(t, testbedtest.Redis(t))
	rdb.AddHook(testbedtest.RoundTrips(func(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
		if cut.Load() {
			return testbedtest.Lose(cmds, redis.ErrPoolTimeout) // as if nothing got through
		}
		return send(ctx, cmds)
	}))
	l, key := configured(t, rdb, redislock.Config{}), rand.Text()
	admin := redistest.Client(t, testbedtest.Redis(t))
	first, err := locker(t, admin).TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 2*pushed)
	defer cancel()
	sent := time.Now()
	granted := waiting(ctx, t, l, key)
	id := admin.ZRange(ctx, lockKey(key)+":queue", 0, 0).Val()[0]
	process, _, _ := strings.Cut(id, "-")
	channel := "shop:lock:push:" + process
	testbedtest.Eventually(t, "a subscriber of the notifications", func() bool { return admin.PubSubNumSub(ctx, channel).Val()[channel] == 1 })
	cut.Store(true)
	defer cut.Store(false)
	shown := strings.Fields(admin.HGet(ctx, lockKey(key)+":alive", id).Val())
	stamp := shown[len(shown)-1]
	delay := pushed / 5
	if late {
		delay = pushed * 3 / 4
	}
	<-time.After(delay)
	admin.Publish(ctx, channel, id+" 9000000000000000 "+stamp)
	slow := time.Since(sent) > pushed*2/5
	if late {
		go func() {
			<-time.After(pushed)
			cancel() // nobody is going to grant anything
		}()
	}
	lease := <-granted
	switch {
	case late && lease != nil:
		t.Errorf("a grant is considered valid that may expire any moment")
	case !late && lease == nil:
		if slow {
			return false
		}
		t.Error("the grant was not taken")
	case !late:
		select {
		case <-lease.Done():
		case <-time.After(2 * pushed):
		}
		if d := time.Since(sent); d > pushed && !slow {
			t.Errorf("the lease ended %v after the request, and Redis has kept it for %v at most", d, pushed)
		}
	}
	return true
}
