package redisbus_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/broadcasttest"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// silence is what tests use that wait for its end.
const silence = 900 * time.Millisecond

// late is what a busy machine may add to a bound.
const late = time.Second

// subscribe returns a subscription that has read its first event.
func subscribe(tb testing.TB, b *redisbus.Bus, patterns ...string) *broadcast.Subscription {
	tb.Helper()
	s, err := b.Subscribe(patterns...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	if e := next(tb, s); e.Missed == nil {
		tb.Fatalf("the first event is %+v", e.Message)
	}
	return s
}

func next(tb testing.TB, s *broadcast.Subscription) broadcast.Event {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patient)
	defer cancel()
	e, err := s.Next(ctx)
	if err != nil {
		tb.Fatalf("no event in %v: %v", patient, err)
	}
	return e
}

// awaitMissed reads until there is a notice of that kind.
func awaitMissed(tb testing.TB, s *broadcast.Subscription, why broadcast.Reason) broadcast.Missed {
	tb.Helper()
	for {
		if e := next(tb, s); e.Missed != nil && e.Missed.Reason == why {
			return *e.Missed
		}
	}
}

// awaitMessage reads until there is a message on t, and says so until there is one: it may be
// lost like every other.
func awaitMessage(tb testing.TB, s *broadcast.Subscription, from *redisbus.Bus) {
	tb.Helper()
	for end := time.Now().Add(patient); time.Now().Before(end); {
		from.Publish("t", "again")
		ctx, cancel := context.WithTimeout(tb.Context(), 50*time.Millisecond)
		e, err := s.Next(ctx)
		cancel()
		if err == nil && e.Missed == nil {
			return
		}
	}
	tb.Fatalf("nothing is heard for %v", patient)
}

// eventually waits for a condition.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for end := time.Now().Add(patient); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("not after %v: %s", patient, what)
		}
	}
}

// errorsOf collects what OnError is told.
type errorsOf struct {
	mu  sync.Mutex
	all []error
}

func (e *errorsOf) add(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, err)
}

func (e *errorsOf) len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

func (e *errorsOf) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.all...).Error()
}

// Behind a network that swallows everything, subscriptions are told within
// Config.Silence, publishers do not wait, and all goes on when the network is back.
func TestBlackHoleIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		proxy := testbedtest.StartProxy(t, server.Addr())
		behind := bus(t, client(t, "redis://"+proxy.Addr()), redisbus.Config{Instance: "behind", Silence: silence, Outbox: 64})
		direct := bus(t, client(t, server.URL()), redisbus.Config{Instance: "direct", Silence: silence})
		start(t, behind)
		start(t, direct)
		history := broadcasttest.NewHistory(behind, direct)
		for i := range 2 {
			history.Watch(t, i, 0, "*")
		}
		s := subscribe(t, behind, "nothing")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		history.Speak(ctx, &wg, time.Millisecond, "a", "b")
		for range testbedtest.Size(2, 20) {
			proxy.BlackHole()
			cut := time.Now()
			awaitMissed(t, s, broadcast.Disconnected)
			if d := time.Since(cut); d > silence+late {
				t.Errorf("told after %v, want at most %v", d, silence)
			} else {
				t.Logf("told after %v", d.Round(time.Millisecond))
			}
			// They go on to speak, however slowly.
			eventually(t, "publishers do not wait", func() bool { return behind.Stats().Dropped > 0 })
			if err := proxy.Pass(); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			awaitMissed(t, s, broadcast.Connected)
			t.Logf("back after %v", time.Since(back).Round(time.Millisecond))
		}
		cancel()
		wg.Wait()
		history.Check(t)
	})
}

// Publish does not wait for a server that does not answer, nor does Run at its end.
func TestPublishNeverBlocks(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		proxy := testbedtest.StartProxy(t, strings.TrimSuffix(strings.TrimPrefix(testbedtest.Redis(t), "redis://"), "/0"))
		proxy.BlackHole()
		var told errorsOf
		b := bus(t, client(t, "redis://"+proxy.Addr()), redisbus.Config{Outbox: 100, Timeout: 300 * time.Millisecond, OnError: told.add})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		full, slow, slowest := 0, 0, time.Duration(0)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			begin := time.Now()
			if errors.Is(b.Publish("t", "x"), broadcast.ErrFull) {
				full++
			}
			d := time.Since(begin)
			if slowest = max(slowest, d); d > 250*time.Millisecond {
				slow++
			}
		}
		// Who waits for attempts to send does so again and again; now and then it is the machine.
		if slow > 2 || slowest > late || full == 0 {
			t.Errorf("Publish was slow %d times, for up to %v, and failed with ErrFull %d times", slow, slowest, full)
		}
		cancel()
		begin := time.Now()
		if err := <-done; err != nil || time.Since(begin) > 600*time.Millisecond+late {
			t.Errorf("Run = %v, %v after the end of its context; want at most 600 ms", err, time.Since(begin))
		}
		s := b.Stats()
		if s.Dropped != uint64(full) || s.Failed+s.Dropped != s.Published || s.Live {
			t.Errorf("%+v, with %d times ErrFull", s, full)
		}
		if text := told.text(); strings.Count(text, "listen to") != 1 || strings.Count(text, "send to") != 1 {
			t.Errorf("OnError is told %q, want each trouble once", text)
		}
	})
}

// The server is killed and comes back, again and again.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		b := []*redisbus.Bus{bus(t, client(t, server.URL()), redisbus.Config{}), bus(t, client(t, server.URL()), redisbus.Config{})}
		start(t, b[0])
		start(t, b[1])
		history := broadcasttest.NewHistory(b[0], b[1])
		for i := range b {
			history.Watch(t, i, 0, "*")
			history.Watch(t, i, 0, "b")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		history.Speak(ctx, &wg, time.Millisecond, "a", "b")
		for range testbedtest.Size(3, 20) {
			s := subscribe(t, b[0], "nothing")
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			awaitMissed(t, s, broadcast.Disconnected)
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitMissed(t, s, broadcast.Connected)
			s.Close()
		}
		cancel()
		wg.Wait()
		history.Check(t)
	})
}

// A server that has too much to send to a process throws it out. That is noticed by the
// end of the connection, though nothing was silent.
func TestOutputBufferKillIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--client-output-buffer-limit", "pubsub 1mb 0 0"}})
		admin := client(t, server.URL())
		proxy := testbedtest.StartProxy(t, server.Addr())
		slow := bus(t, client(t, "redis://"+proxy.Addr()), redisbus.Config{Instance: "slow", Silence: time.Hour, Timeout: time.Second})
		fast := bus(t, client(t, server.URL()), redisbus.Config{Instance: "fast"})
		start(t, slow)
		start(t, fast)
		s := subscribe(t, slow, "t")
		connections := func() int {
			n, err := admin.PubSubNumSub(t.Context(), "shop:broadcast:{all}").Result()
			if err != nil {
				t.Fatal(err)
			}
			return int(n["shop:broadcast:{all}"])
		}
		proxy.BlackHole()
		payload := strings.Repeat("x", broadcast.MaxPayload)
		for end := time.Now().Add(patient); connections() == 2; {
			for range 100 {
				fast.Publish("t", payload)
			}
			time.Sleep(10 * time.Millisecond)
			if time.Now().After(end) {
				t.Fatal("the server keeps a connection on which nobody reads")
			}
		}
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		awaitMissed(t, s, broadcast.Connected)
		awaitMessage(t, s, fast)
	})
}

// split sends to one server and listens to another one, as a client does that a
// failover has caught on both sides.
type split struct {
	redis.UniversalClient
	listens atomic.Pointer[redis.Client]
}

func (s *split) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return s.listens.Load().Subscribe(ctx, channels...)
}

// A process that does not hear what it says itself, though its connection lives, opens
// another one and says so.
func TestUnheardIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		right, wrong := testbedtest.StartRedis(t, testbed.RedisConfig{}), testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := &split{UniversalClient: client(t, right.URL())}
		rdb.listens.Store(client(t, right.URL()))
		var told errorsOf
		b := bus(t, rdb, redisbus.Config{Silence: silence, OnError: told.add})
		start(t, b)
		s := subscribe(t, b, "*")
		b.Publish("t", "heard")
		if e := next(t, s); e.Message.Payload != "heard" {
			t.Fatalf("got %+v", e)
		}
		rdb.listens.Store(client(t, wrong.URL()))
		if err := client(t, right.URL()).ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		awaitMissed(t, s, broadcast.Connected) // at the wrong one
		b.Publish("t", "unheard")
		begin := time.Now()
		awaitMissed(t, s, broadcast.Disconnected)
		if d := time.Since(begin); d > silence+2*silence/3+late {
			t.Errorf("told after %v, want at most %v", d, silence+2*silence/3)
		}
		rdb.listens.Store(client(t, right.URL()))
		awaitMessage(t, s, b)
		if !strings.Contains(told.text(), "does not hear itself") {
			t.Errorf("OnError is told %q", told.text())
		}
	})
}

// A process that dies may have had more to say: everybody is told that it is silent. One
// that says goodbye has not.
func TestDeadOriginIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		proxy := testbedtest.StartProxy(t, server.Addr())
		hears := bus(t, client(t, server.URL()), redisbus.Config{Instance: "hears", Silence: silence})
		start(t, hears)
		s := subscribe(t, hears, "*")
		polite := bus(t, client(t, server.URL()), redisbus.Config{Instance: "polite", Silence: silence})
		goodbye := start(t, polite)
		dies := bus(t, client(t, "redis://"+proxy.Addr()), redisbus.Config{Instance: "dies", Silence: silence})
		start(t, dies)
		awaitMessage(t, s, polite)
		goodbye()
		if err := dies.Publish("t", "after the goodbye"); err != nil {
			t.Fatal(err)
		}
		for e := next(t, s); e.Message.ID.Origin != "dies"; e = next(t, s) { // what comes before may be a late beat
			continue
		}
		proxy.Refuse() // for the others it is dead
		for {
			m := awaitMissed(t, s, broadcast.Gap)
			if m.Origin == "polite" {
				t.Error("a process that has said goodbye is missed")
			}
			if m.Origin == "dies" {
				break
			}
		}
	})
}

// The last message of a process is lost, and nothing follows that would show it.
func TestLostTailIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		hears := bus(t, client(t, server.URL()), redisbus.Config{})
		start(t, hears)
		s := subscribe(t, hears, "*")
		says := bus(t, client(t, server.URL()), redisbus.Config{Instance: "says", Outbox: 1})
		for i, want := range []error{nil, broadcast.ErrFull, broadcast.ErrFull} { // it does not run yet
			if err := says.Publish("t", "x"); !errors.Is(err, want) {
				t.Errorf("Publish %d = %v, want %v", i, err, want)
			}
		}
		start(t, says)
		if m := awaitMissed(t, s, broadcast.Gap); m.Origin != "says" {
			t.Errorf("%+v, want a gap of says", m)
		}
		if n := hears.Stats().Received; n > 1 {
			t.Errorf("%d messages have come, want one at most", n)
		}
	})
}

// What is queued when Run ends is sent.
func TestRunSendsTheRest(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		hears := bus(t, client(t, server.URL()), redisbus.Config{})
		start(t, hears)
		s := subscribe(t, hears, "*")
		says := bus(t, client(t, server.URL()), redisbus.Config{})
		stop := start(t, says)
		const n = 200
		for range n {
			if err := says.Publish("t", "x"); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		for i := range n {
			if e := next(t, s); e.Missed != nil || e.Message.ID.Seq != uint64(i+1) {
				t.Fatalf("got %+v, want message %d", e, i+1)
			}
		}
	})
}
