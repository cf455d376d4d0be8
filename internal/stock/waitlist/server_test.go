package waitlist_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock/waitlist"
)

// fallbackPoll is what the tests use in which Redis fails. Bounds are many times that.
const fallbackPoll = time.Second

func (s services) rechecking() waitlist.Config {
	c := s.config()
	c.FallbackPoll = fallbackPoll
	return c
}

// waiterServer is where the process of TestWaiterProcess finds Redis, and waiterKey
// what it waits for.
const (
	waiterServer = "WAITLIST_TEST_SERVER"
	waiterKey    = "WAITLIST_TEST_KEY"
)

// TestWaiterProcess is no test: it is what TestKilledFirstWaiterIsReplaced runs and kills.
func TestWaiterProcess(t *testing.T) {
	url := os.Getenv(waiterServer)
	if url == "" {
		return
	}
	w := start(t, connect(t, url, queueTTL).config())
	looks := 0
	claim := waitlist.Claim{
		Poll: func(context.Context) (bool, error) {
			if looks++; looks == 2 { // the one before it waits for a signal
				fmt.Fprintln(os.Stderr, "first")
			}
			return false, nil
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient) // nobody may be left to kill it
	defer cancel()
	_ = w.Wait(ctx, os.Getenv(waiterKey), claim)
}

// The first in the queue is killed while it waits for a signal. The next one is first when the lease has ended, and the
// following signal reaches it, not the dead one. There is no fallback poll.
func TestKilledFirstWaiterIsReplaced(t *testing.T) {
	t.Parallel()
	url := testbedtest.Redis(t)
	s := newShelf()
	c := connect(t, url, queueTTL)
	w := start(t, c.config())
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWaiterProcess$")
	cmd.Env = append(os.Environ(), waiterServer+"="+url, waiterKey+"="+s.key)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "first\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	asleep := "shop:lock:{units:" + s.key + "}:cond:units"
	testbedtest.Eventually(t, "the process waits for a signal", func() bool { return c.rdb.ZCard(t.Context(), asleep).Val() == 1 })
	done := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(1, 1)) })
	testbedtest.Eventually(t, "the next one stands behind", func() bool { return s.standing(t, c.config()) == 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	testbedtest.Eventually(t, "the next one waits for a signal", func() bool { return read(s, &s.looks) >= 2 })
	t.Logf("first %v after the kill; the TTL is %v", time.Since(killed), queueTTL)
	if d := time.Since(killed); d > 15*queueTTL {
		t.Errorf("first %v after the kill; the TTL is %v", d, queueTTL)
	}
	given := time.Now()
	s.give(w, 1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Logf("served after %v", time.Since(given))
}

// Redis is killed, and comes back empty. Customers are served all the time, those
// included who come while it is unavailable, and in order again when it has recovered.
func TestRedisIsKilled(t *testing.T) {
	t.Parallel()
	outage(t, (*testbed.Redis).Kill, func(server *testbed.Redis) error { return server.Restart(t.Context()) })
}

// Redis is silent: connections stay open.
func TestUnansweringRedisDelaysNobodyLong(t *testing.T) {
	t.Parallel()
	outage(t, (*testbed.Redis).Pause, (*testbed.Redis).Resume)
}

func outage(t *testing.T, begin, end func(*testbed.Redis) error) {
	t.Helper()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	s := newShelf()
	var lists []*waitlist.Waitlist
	var c waitlist.Config
	var failures atomic.Int32
	for range 3 {
		c = connect(t, server.URL(), queueTTL).rechecking()
		c.OnError = func(string, error) { failures.Add(1) }
		lists = append(lists, start(t, c))
	}
	var all sync.WaitGroup
	arrive := func(from, to int) {
		for id := from; id < to; id++ {
			done := background(t, func(ctx context.Context) error {
				return lists[id%len(lists)].Wait(ctx, s.key, s.claim(id, 1))
			})
			all.Go(func() {
				if err := <-done; err != nil {
					t.Errorf("customer %d: %v", id, err)
				}
			})
		}
	}
	serve := func(n int) {
		t.Helper()
		want, begun := s.count()+n, time.Now()
		s.give(lists[0], n)
		testbedtest.Eventually(t, "customers are served", func() bool { return s.count() >= want })
		t.Logf("%d customers were served within %v", n, time.Since(begun))
	}
	arrive(0, 9)
	testbedtest.Eventually(t, "they stand in line", func() bool { return s.standing(t, c) == 9 })
	serve(1)
	if err := begin(server); err != nil {
		t.Fatal(err)
	}
	arrive(9, 12)
	serve(4)
	if failures.Load() == 0 {
		t.Error("nobody was notified of an error")
	}
	if err := end(server); err != nil {
		t.Fatal(err)
	}
	serve(3)
	testbedtest.Eventually(t, "the others stand in line", func() bool { return s.standing(t, c) == 4 })
	serve(4)
	all.Wait()
	for _, w := range lists {
		testbedtest.Eventually(t, "nobody waits", func() bool { return w.Waiting() == 0 })
	}
}

// Many leave at random, and what they leave in Redis are the last fences, for a day.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	var all sync.WaitGroup
	var rdb services
	for range 3 {
		rdb = connect(t, server.URL(), queueTTL)
		w := start(t, rdb.rechecking())
		for i := range 100 {
			s := &shelf{key: fmt.Sprintf("sku-%d", i%5)}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Second))
				defer cancel()
				if err := w.Wait(ctx, s.key, s.claim(i, 1)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
			all.Go(func() {
				sleepUpTo(2 * time.Second)
				w.Notify(s.key)
			})
		}
	}
	all.Wait()
	var left []string
	testbedtest.Eventually(t, "nothing is left", func() bool {
		left = slices.DeleteFunc(rdb.rdb.Keys(t.Context(), "*").Val(), func(key string) bool { return strings.HasSuffix(key, ":fence") })
		return len(left) == 0
	})
	if n := len(rdb.rdb.Keys(t.Context(), "*").Val()); n == 0 || n > 10 {
		t.Errorf("%d fences of five keys", n)
	}
}
