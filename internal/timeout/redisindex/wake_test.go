package redisindex_test

import (
	"context"
	"crypto/rand"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
)

func farAway() time.Time { return time.Now().Add(1000 * time.Hour).Truncate(time.Millisecond) }

// running runs x until the test ends.
func running(t *testing.T, x *redisindex.Index) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := x.Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// expectWake schedules earlier and earlier timers until a message arrives.
func expectWake(t *testing.T, from *redisindex.Index, s timeout.Shard, id string, wake <-chan time.Time, at *time.Time) {
	t.Helper()
	for len(wake) > 0 {
		<-wake
	}
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		*at = at.Add(-time.Second)
		// The cluster may be between two masters.
		err := from.Schedule(t.Context(), s.Kind, s.Partition, []timeout.Entry{{ID: id, At: *at}})
		select {
		case got := <-wake:
			if err == nil && got.Before(*at) {
				t.Errorf("received %v, and the earliest is %v", got, *at)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("no new head received")
}

// idFor returns an id that is in s.
func idFor(t *testing.T, x *redisindex.Index, s timeout.Shard) string {
	t.Helper()
	for n := range 1000 {
		id := string(rune('a'+n%26)) + time.Duration(n).String()
		put(t, x, s.Kind, id, time.UnixMilli(1))
		for _, of := range x.Shards(s.Kind, s.Partition) { // so that none has it any more
			c, err := x.Claim(t.Context(), of, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Timers) == 1 && of == s {
				return id
			}
		}
	}
	t.Fatalf("no id in %v", s)
	return ""
}

// Messages arrive again after the server has thrown the subscribers out, again and again.
func TestWakeSurvivesKilledSubscriptions(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	admin := client(t, server.URL())
	x, from := index(t, client(t, server.URL()), redisindex.Config{}), index(t, admin, redisindex.Config{})
	s := x.Shards("kind", partition)[0]
	id, wake, at := idFor(t, from, s), x.Wake(s), farAway()
	running(t, x)
	for range 5 {
		expectWake(t, from, s, id, wake, &at)
		if err := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// Messages arrive again after the network was silent.
func TestWakeSurvivesASilentNetwork(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	proxy := testbedtest.StartProxy(t, server.Addr())
	rdb, dialed := client(t, "redis://"+proxy.Addr()), make(chan struct{}, 100)
	rdb.AddHook(testbedtest.Dials(func(net.Conn) {
		select {
		case dialed <- struct{}{}:
		default:
		}
	}))
	x := index(t, rdb, redisindex.Config{})
	from := index(t, client(t, server.URL()), redisindex.Config{})
	s := x.Shards("kind", partition)[0]
	id, wake, at := idFor(t, from, s), x.Wake(s), farAway()
	running(t, x)
	expectWake(t, from, s, id, wake, &at)
	proxy.BlackHole()
	for len(dialed) > 0 {
		<-dialed
	}
	select {
	case <-dialed: // it has given the connection up
	case <-time.After(time.Minute):
		t.Fatal("a silent connection is kept")
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	expectWake(t, from, s, id, wake, &at)
}

// received returns the next moment of a channel.
func received(t *testing.T, wake <-chan time.Time) time.Time {
	t.Helper()
	select {
	case at := <-wake:
		return at
	case <-time.After(time.Minute):
		t.Fatal("nothing received")
		return time.Time{}
	}
}

// The process that schedules or requeues the earliest timer is woken for it without any message.
func TestOwnHeadNeedsNoMessage(t *testing.T) {
	t.Parallel()
	x, kind := index(t, client(t, testbedtest.Redis(t)), redisindex.Config{Shards: 1}), rand.Text()
	s, at := x.Shards(kind, partition)[0], farAway()
	wake := x.Wake(s)
	put(t, x, kind, "x", at)
	put(t, x, kind, "y", at.Add(time.Hour)) // is not the head
	if got := received(t, wake); !got.Equal(at) {
		t.Errorf("received %v, want %v", got, at)
	}
	put(t, x, kind, "x", time.UnixMilli(1))
	received(t, wake)
	c, err := x.Claim(t.Context(), s, 1)
	if err != nil || len(c.Timers) != 1 {
		t.Fatalf("Claim = %+v, %v", c, err)
	}
	if err := x.Schedule(t.Context(), kind, partition, []timeout.Entry{{ID: "x", At: time.UnixMilli(2)}}); err != nil {
		t.Fatal(err)
	}
	if got := received(t, wake); got.UnixMilli() != 2 {
		t.Errorf("received %v after it was requeued", got)
	}
}

// Of two moments that nobody has taken yet the earlier one is kept.
func TestWakeKeepsTheEarlierMoment(t *testing.T) {
	t.Parallel()
	rdb := client(t, testbedtest.Redis(t))
	x, kind := index(t, rdb, redisindex.Config{Shards: 1}), rand.Text()
	s := x.Shards(kind, partition)[0]
	wake, at := x.Wake(s), farAway()
	for _, d := range []time.Duration{0, time.Hour, 2 * time.Hour} {
		put(t, x, kind, "x", at.Add(d)) // the only one, so that it is the head
		if err := rdb.Del(t.Context(), keyOf(s, "pending")).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The third call was sent once the second moment had been delivered.
	if got := received(t, wake); !got.Equal(at) {
		t.Errorf("received %v, want %v", got, at)
	}
}

// A server that refuses messages still takes timers.
func TestRefusedMessagesCostNothingElse(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	admin := client(t, server.URL())
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "quiet", "on", "nopass", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr: server.Addr(), Username: "quiet", Password: "any", MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	defer rdb.Close()
	x := index(t, rdb, redisindex.Config{})
	put(t, x, "kind", "x", time.UnixMilli(1))
	if got := claimAll(t, x, "kind"); len(got) != 1 {
		t.Errorf("claimed %v, want one", got)
	}
}
