package waitlist_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock/waitlist"
)

// counter counts the commands of pipelines, and the calls of scripts, several of which may be one command. A command
// that repeats calls because the server did not know their script has no new calls.
type counter struct{ commands, calls atomic.Int32 }

func (c *counter) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	c.commands.Add(int32(len(cmds)))
	for _, cmd := range cmds {
		if cmd.Name() == "evalsha" {
			c.calls.Add(int32(redistest.Calls(cmd)))
		}
	}
	return send(ctx, cmds)
}

// The cost of a storm of notifications depends on its duration, not on their number. The last one still arrives: the
// waiter wants as many units as notifications.
func TestManyNotificationsAreMerged(t *testing.T) {
	t.Parallel()
	const storm = 10_000
	url := testbedtest.Redis(t)
	waiting := connect(t, url, calm)
	s := newShelf()
	w := start(t, waiting.config())
	done := background(t, func(ctx context.Context) error { return w.Wait(ctx, s.key, s.claim(1, storm)) })
	testbedtest.Eventually(t, "the waiter has looked with the lock held", func() bool { return read(s, &s.looks) >= 2 })

	quiet := connect(t, url, calm)
	var sent counter
	quiet.rdb.AddHook(testbedtest.RoundTrips(sent.roundTrip))
	n := start(t, quiet.config())
	begun := time.Now()
	for i := range storm {
		s.give(n, 1)
		if i%50 == 0 {
			<-time.After(time.Millisecond)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	// Four scripts in every 10 ms, at the beginning and at the end. Each is sent again to a server that has not cached
	// it.
	if got, most := sent.commands.Load(), int32(4*(took/(10*time.Millisecond)+2)+4); got > most {
		t.Errorf("%d notifications in %v cost %d commands, want %d at most", storm, took, got, most)
	}
	t.Logf("%d notifications in %v cost %d commands and %d looks", storm, took, sent.commands.Load(), read(s, &s.looks))
}

// A key for which nobody waits in the queue costs one call.
func TestNotifyWithoutWaitersIsCheap(t *testing.T) {
	t.Parallel()
	const keys = 1000
	s := connect(t, testbedtest.Redis(t), calm)
	if _, err := s.queue.Inspect(t.Context(), "line:a"); err != nil { // the server knows the script then
		t.Fatal(err)
	}
	var sent counter
	s.rdb.AddHook(testbedtest.RoundTrips(sent.roundTrip))
	w := start(t, s.config())
	shelf := newShelf()
	for i := range keys {
		w.Notify(fmt.Sprintf("%s-%d", shelf.key, i))
	}
	testbedtest.Eventually(t, "a notification of each key", func() bool { return sent.calls.Load() >= keys })
	<-time.After(100 * time.Millisecond)
	if n := sent.calls.Load(); n > keys+keys/2 { // it would be thousands; a busy machine may lose a few answers
		t.Errorf("%d keys cost %d calls", keys, n)
	}
}

// Before Run, and without a lock service that answers, Notify returns at once, and
// its notifications are not lost.
func TestNotifyDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory()
		var failures atomic.Int32
		c.OnError = func(string, error) { failures.Add(1) }
		lock := c.Lock
		c.Lock, c.Queue = absent(), lock
		w, err := waitlist.New(c)
		if err != nil {
			t.Fatal(err)
		}
		s := newShelf()
		place, err := lock.TryAcquire(t.Context(), "line:"+s.key)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for range 1000 {
			w.Notify(s.key, "other")
		}
		ctx, stop := context.WithCancel(t.Context())
		running := make(chan error, 1)
		go func() { running <- w.Run(ctx) }()
		synctest.Wait()
		for range 1000 {
			w.Notify(s.key, "other")
		}
		if d := time.Since(begun); d != 0 {
			t.Errorf("it took %v", d)
		}
		time.Sleep(time.Second)
		if n := failures.Load(); n != 2 { // nobody waits in the queue for the other key
			t.Errorf("notified of %d errors, want one for each time that Run was at it", n)
		}
		stop()
		if err := <-running; err != nil {
			t.Error(err)
		}
		place.Release(t.Context())
	})
}
