package redisbus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		good := redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}
		for name, c := range map[string]struct {
			opts redis.Options
			cfg  redisbus.Config
			ok   bool
		}{
			"as required":       {good, redisbus.Config{}, true},
			"defaults":          {redis.Options{}, redisbus.Config{}, false},
			"repeats":           {redis.Options{ContextTimeoutEnabled: true}, redisbus.Config{}, false},
			"ignores deadlines": {redis.Options{MaxRetries: -1}, redisbus.Config{}, false},
			"instance":          {good, redisbus.Config{Instance: "a b"}, false},
			"channel":           {good, redisbus.Config{Channel: "a b"}, false},
			"queue":             {good, redisbus.Config{Queue: -1}, false},
			"outbox":            {good, redisbus.Config{Outbox: -1}, false},
			"short silence":     {good, redisbus.Config{Silence: time.Millisecond}, false},
			"shorter silence":   {good, redisbus.Config{Silence: 100 * time.Millisecond}, true},
			"long timeout":      {good, redisbus.Config{Timeout: time.Minute}, false},
			"negative timeout":  {good, redisbus.Config{Timeout: -1}, false},
		} {
			rdb := redis.NewClient(&c.opts)
			if _, err := redisbus.New(rdb, c.cfg); (err == nil) != c.ok {
				t.Errorf("%s: New = %v", name, err)
			}
			rdb.Close()
		}
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
		defer cluster.Close()
		if _, err := redisbus.New(cluster, redisbus.Config{}); err == nil {
			t.Error("New takes a cluster client that repeats commands")
		}
	})
}

// What operators see, and what other versions must understand.
func TestFramesAsDocumented(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := client(t, server.URL())
		sub := rdb.Subscribe(t.Context(), "shop:broadcast:{all}")
		defer sub.Close()
		receive := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			m, err := sub.ReceiveMessage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return m.Payload
		}
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := bus(t, rdb, redisbus.Config{Instance: "shop:1", Silence: silence})
		stop := start(t, b)
		s := subscribe(t, b, "*")
		if err := b.Publish("stock.lamp", `{"on_hand": 3}`); err != nil {
			t.Fatal(err)
		}
		id := next(t, s).Message.ID
		if id.Origin != "shop:1" || id.Seq != 1 {
			t.Errorf("the first message is %v", id)
		}
		for _, want := range []string{
			"1h shop:1 " + id.Epoch + " 0",
			"1m shop:1 " + id.Epoch + ` 1 stock.lamp {"on_hand": 3}`,
			"1b shop:1 " + id.Epoch + " 1",
		} {
			got := receive()
			for !strings.HasPrefix(want, "1b") && strings.HasPrefix(got, "1b") {
				got = receive()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		stop()
		got := receive()
		for strings.HasPrefix(got, "1b ") {
			got = receive()
		}
		if want := "1x shop:1 " + id.Epoch + " 1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Frames that come twice, late, out of order, or from somebody else.
func TestStrangeFrames(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := client(t, server.URL())
		b := bus(t, rdb, redisbus.Config{})
		start(t, b)
		s := subscribe(t, b, "*")
		say := func(frames ...string) {
			for _, f := range frames {
				if err := rdb.Publish(t.Context(), "shop:broadcast:{all}", f).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect := func(want ...string) {
			t.Helper()
			for _, w := range want {
				e := next(t, s)
				got := fmt.Sprintf("%s %d %s", e.Message.ID.Origin, e.Message.ID.Seq, e.Message.Payload)
				if e.Missed != nil {
					got = fmt.Sprintf("%s %s %d", e.Missed.Reason, e.Missed.Origin, e.Missed.Count)
				}
				if got != w {
					t.Errorf("got %s, want %s", got, w)
				}
			}
		}
		say("1m a E 1 t one", "1m a E 1 t twice", "1m a E 2 t two")
		expect("a 1 one", "a 2 two")
		say("1m a E 5 t five", "1m a E 3 t late", "1m a E 5 t twice", "1m a E 6 t six")
		expect("gap a 2", "a 5 five", "a 6 six")
		say("1b a E 6", "1b a E 4", "1b a E 8", "1m a E 8 t late", "1m a E 9 t nine")
		expect("gap a 2", "a 9 nine")
		say("1m a F 1 t other epoch", "1m b E 3 t unknown", "1m b E 4 t known", "1b c E 0", "1m c E 1 t first")
		expect("a 1 other epoch", "gap b 0", "b 3 unknown", "b 4 known", "c 1 first")
		say("1x c E 3", "1x b E 4", "1m a E 10 t ten")
		expect("gap c 2", "a 10 ten")
		bad := []string{"", "hello", "1p ", "1p 3 1b", "1p x 1b a E 9", "1p 8 1b a E 9x", "1p 11 1p 8 1b a E 9", "2m a E 11 t x", "1m a E x t x", "1m a E -1 t x", "1m a E 0 t x", "1m a E", "1m  E 11 t x", "1m a E 11  x", "1b a"}
		say(bad...)
		say("1p 12 1m a E 11 t  13 1m a E 12 t x")
		expect("a 11 ", "a 12 x")
		if n := b.Stats().Foreign; n != uint64(len(bad)) {
			t.Errorf("Foreign = %d, want %d", n, len(bad))
		}
		if n := b.Stats().Missing; n != 2+2+2 {
			t.Errorf("Missing = %d, want 6", n)
		}
	})
}

// All subscriptions of a process share one connection, and listening is free of commands.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := client(t, server.URL())
		b := bus(t, rdb, redisbus.Config{})
		start(t, b)
		for i := range 50 {
			subscribe(t, b, "*", fmt.Sprint("t", i))
		}
		n, err := rdb.PubSubNumSub(t.Context(), "shop:broadcast:{all}").Result()
		if err != nil || n["shop:broadcast:{all}"] != 1 {
			t.Errorf("%v connections listen, %v; want 1", n, err)
		}
	})
}

// A server that refuses to be listened to is reported once, and does not keep the
// process from speaking.
func TestRefusedSubscription(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin := client(t, server.URL())
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "mute", "on", "nopass", "~*", "&*", "+@all", "-subscribe").Err(); err != nil {
			t.Fatal(err)
		}
		hears := bus(t, admin, redisbus.Config{})
		start(t, hears)
		s := subscribe(t, hears, "*")
		rdb := redis.NewClient(&redis.Options{
			Addr: server.Addr(), Username: "mute", Password: "any", MaxRetries: -1, ContextTimeoutEnabled: true,
		})
		defer rdb.Close()
		var told errorsOf
		b := bus(t, rdb, redisbus.Config{OnError: told.add})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		awaitMessage(t, s, b)
		eventually(t, "the refusal is told", func() bool { return told.len() > 0 })
		time.Sleep(500 * time.Millisecond) // a few attempts
		if text := told.text(); strings.Count(text, "\n") != 0 || !strings.Contains(text, "NOPERM") {
			t.Errorf("OnError is told %q", text)
		}
		if s := b.Stats(); s.Live || s.Losses != 0 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// Two buses on two channels of one server do not hear one another.
func TestChannelsAreApart(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		one := bus(t, client(t, server.URL()), redisbus.Config{Channel: "one"})
		two := bus(t, client(t, server.URL()), redisbus.Config{Channel: "two"})
		start(t, one)
		start(t, two)
		s := subscribe(t, one, "*")
		two.Publish("t", "2")
		awaitMessage(t, subscribe(t, two, "*"), two)
		one.Publish("t", "1")
		if e := next(t, s); e.Message.Payload != "1" {
			t.Errorf("got %+v", e)
		}
	})
}

// The trap: the channel of go-redis hides that its connection was lost.
func TestTrapOfTheClient(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	rdb := client(t, server.URL())
	// In one request, so that nobody can be back in between.
	killAndPublish := func(t testing.TB) {
		t.Helper()
		_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
			return p.Publish(t.Context(), "c", "lost").Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("wrong: Channel", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			sub := rdb.Subscribe(t.Context(), "c")
			defer sub.Close()
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			messages := sub.Channel()
			killAndPublish(t)
			for end := time.Now().Add(patient); time.Now().Before(end); {
				if err := rdb.Publish(t.Context(), "c", "next").Err(); err != nil {
					t.Fatal(err)
				}
				select {
				case m := <-messages:
					if m.Payload != "next" {
						t.Errorf("%q arrives, so the trap is gone", m.Payload)
					}
					return // and nothing says that one was lost
				case <-time.After(time.Millisecond):
				}
			}
			t.Fatal("nothing arrives")
		})
	})
	t.Run("right", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			b := bus(t, rdb, redisbus.Config{Channel: "c"})
			start(t, b)
			s := subscribe(t, b, "*")
			killAndPublish(t)
			if e := next(t, s); e.Missed == nil || e.Missed.Reason == broadcast.Gap {
				t.Errorf("got %+v, want to be told", e)
			}
		})
	})
}
