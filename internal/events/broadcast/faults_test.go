package broadcast_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// late is what a busy machine may add to a bound.
const late = 2 * time.Second

// A subscription survives a server that is killed and restarted, and notices follow what it has lost.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		var errs atomic.Int32
		b := open(t, client(t, server.URL()), func(error) { errs.Add(1) })
		w := numbers(t, b, "topic").watch(t, b)
		restarts := testbedtest.Size(3, 20)
		for range restarts {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			<-time.After(500 * time.Millisecond) // several attempts to connect
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.notice(t)
			w.message(t)
		}
		if n := errs.Load(); int(n) != restarts {
			t.Errorf("%d errors are reported for %d restarts", n, restarts)
		}
	})
}

// A subscription gives up a connection on which nothing arrives. Publish returns after its second.
func TestSilentNetwork(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		proxy := testbedtest.StartProxy(t, server.Addr())
		ended := make(chan error, 1)
		behind := open(t, client(t, "redis://"+proxy.Addr()), func(err error) { ended <- err })
		w := numbers(t, open(t, client(t, server.URL()), ignore), "topic").watch(t, behind)
		w.message(t)
		proxy.BlackHole()
		cut := time.Now()
		if err := behind.Publish(t.Context(), "topic", "unknown"); err == nil || time.Since(cut) > time.Second+late {
			t.Errorf("Publish = %v after %v, want an error after 1s", err, time.Since(cut))
		}
		select {
		case err := <-ended:
			if !strings.Contains(err.Error(), "silent") {
				t.Errorf("the connection has ended: %v; want silence", err)
			}
		case <-time.After(time.Until(cut.Add(4*time.Second + late))):
			t.Errorf("the connection has not ended %v after the last arrival", time.Since(cut))
		}
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		w.notice(t)
		w.message(t)
	})
}

// Redis ends the connection of a subscriber that blocks for too long. The subscriber receives a notice, and others
// receive everything.
func TestBlockedSubscriberLosesItsConnection(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--client-output-buffer-limit", "pubsub 1mb 0 0"}})
		admin := client(t, server.URL())
		b := open(t, admin, ignore)
		blocked, released, noticed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(released) })
		defer release()
		go func() {
			defer close(noticed)
			events := 0
			for e := range b.Subscribe(t.Context(), "topic") {
				if events++; events == 1 {
					close(blocked)
					<-released
				} else if e.Missed {
					return
				}
			}
		}()
		<-blocked
		other, payload := read(t, b, "topic"), strings.Repeat("x", 1<<18)
		testbedtest.Eventually(t, "the server ends the connection", func() bool {
			if err := b.Publish(t.Context(), "topic", payload); err != nil {
				t.Error(err)
			}
			if e := other.next(t); e.Payload != payload {
				t.Errorf("the other subscription received %.80v", e)
			}
			const channel = "shop:broadcast:topic"
			return admin.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
		})
		release()
		<-noticed
	})
}

// A server that refuses a subscription is reported once. The bus still publishes.
func TestRefusedSubscription(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin := client(t, server.URL())
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "mute", "on", "nopass", "~*", "&*", "+@all", "-subscribe").Err(); err != nil {
			t.Fatal(err)
		}
		r := read(t, open(t, admin, ignore), "topic")
		errs := make(chan error, 100)
		mute := open(t, client(t, "redis://mute:any@"+server.Addr()), func(err error) { errs <- err })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // several attempts
		defer cancel()
		for e := range mute.Subscribe(ctx, "topic") {
			t.Errorf("received %+v", e)
		}
		if err := <-errs; len(errs) > 0 || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%v is reported, and %d more", err, len(errs))
		}
		if err := mute.Publish(t.Context(), "topic", "message"); err != nil {
			t.Error(err)
		}
		if e := r.next(t); e.Payload != "message" {
			t.Errorf("received %+v", e)
		}
	})
}

// Subscriptions survive the replacement of the master.
func TestFailover(t *testing.T) {
	t.Parallel()
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s := testbedtest.StartSentinel(t)
		failover(t, sentinelURL(s), func(ctx context.Context) error {
			master, err := s.Master(ctx)
			if err != nil {
				return err
			}
			return errors.Join(master.Kill(), s.WaitForFailover(ctx, master))
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := testbedtest.StartCluster(t)
		failover(t, clusterURL(c), func(ctx context.Context) error {
			const channel = "shop:broadcast:topic"
			old, err := c.KillMasterOf(ctx, channel)
			if err != nil {
				return err
			}
			return c.WaitForFailover(ctx, channel, old)
		})
	})
}

func failover(t *testing.T, url string, replace func(ctx context.Context) error) {
	t.Helper()
	w := numbers(t, open(t, client(t, url), ignore), "topic").watch(t, open(t, client(t, url), ignore))
	w.message(t)
	if err := replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.notice(t)
	w.message(t)
}

// The channel of go-redis hides that its connection was lost. A bus on the same client does not.
func TestChannelOfTheClientHidesLoss(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := client(t, server.URL())
		const channel = "shop:broadcast:topic"
		sub := rdb.Subscribe(t.Context(), channel)
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		wrong, right := sub.Channel(), read(t, open(t, rdb, ignore), "topic")
		_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error { // one request, so no subscription recovers in between
			p.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
			return p.Publish(t.Context(), channel, "lost").Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		testbedtest.Eventually(t, "the channel receives again", func() bool {
			if err := rdb.Publish(t.Context(), channel, "next").Err(); err != nil {
				t.Fatal(err)
			}
			select {
			case m := <-wrong:
				if m.Payload != "next" {
					t.Errorf("received %q: the trap is gone", m.Payload)
				}
				return true
			default:
				return false
			}
		})
		if e := right.next(t); !e.Missed {
			t.Errorf("the bus received %q in place of a notice", e.Payload)
		}
	})
}
