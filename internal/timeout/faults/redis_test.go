package faults_test

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// Redis forgets everything, again and again, while orders come in and expire.
func TestFlushAllUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := w.start(nodeConfig{Name: "a"})
	b, _ := w.start(nodeConfig{Name: "b"})
	placed, times := w.during(a, testbedtest.Size(800, 30_000), 400*time.Millisecond, func() {
		if err := b.rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
	w.settled(placed, scanDelay)
	t.Logf("flushed %d times: %v %v", times, a.seen.all(), b.seen.all())
	if times == 0 {
		t.Error("the index was never flushed")
	}

	push, err := a.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "late", Due: time.Now().Add(50 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	push()
	indexed := func() bool {
		all, err := a.Stats(t.Context())
		return err == nil && len(all) == 1 && all[0].Pending == 1
	}
	w.wait("the timer is in the index", indexed)
	if err := b.rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	w.wait("a pass has written the index again", indexed)
}

// Redis is away for a while. Orders are placed as ever, and expire from the database alone.
func TestRedisDownWhileOrdersComeIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := w.start(nodeConfig{Name: "a"})
	b, _ := w.start(nodeConfig{Name: "b"})
	outage := time.Duration(testbedtest.Size(3, 10)) * time.Second
	if err := w.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	var took time.Duration
	back := make(chan error, 1)
	missed := func() bool { return a.seen.get("repaired by overdue")+b.seen.get("repaired by overdue") > 0 }
	time.AfterFunc(outage, func() {
		within(t.Context(), patience, missed) // however slow the machine is
		err := w.redis.Restart(context.WithoutCancel(t.Context()))
		took = time.Since(down)
		back <- err
	})
	loaded := w.load(a, testbedtest.Size(500, 4000))
	if err := <-back; err != nil {
		t.Fatal(err)
	}
	w.settled(loaded, scanDelay)
	t.Logf("Redis was unavailable for %v: %v %v", took.Round(time.Millisecond), a.seen.all(), b.seen.all())
	if !missed() {
		t.Error("nothing was scanDelay: Redis was not missed")
	}
}

// Without messages nothing is lost. Consumers poll, and keep the moments of earlier messages.
func TestPubSubConnectionsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduler, _ := w.start(nodeConfig{Name: "scheduler", Canary: true})
	a, _ := w.start(nodeConfig{Name: "a"})
	b, _ := w.start(nodeConfig{Name: "b"})
	killed := 0
	placed, _ := w.during(scheduler, testbedtest.Size(500, 20_000), 20*time.Millisecond, func() {
		n, err := scheduler.rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result()
		if err != nil {
			t.Error(err)
		}
		killed += int(n)
	})
	w.settled(placed, 0)
	t.Logf("%d connections killed: %v %v", killed, a.seen.all(), b.seen.all())
	if killed == 0 {
		t.Error("no connection was killed")
	}
}

// The master dies, and a replica takes over that may lack its last writes.
func TestFailoverToAReplica(t *testing.T) {
	t.Parallel()
	group := testbedtest.StartSentinel(t)
	address := "redis+sentinel://"
	for i, addr := range group.SentinelAddrs() {
		if i > 0 {
			address += ","
		}
		address += addr
	}
	w := newWorldAt(t, address+"/"+group.MasterName())
	a, _ := w.start(nodeConfig{Name: "a"})
	b, _ := w.start(nodeConfig{Name: "b"})
	loaded := make(chan int, 1)
	orders := testbedtest.Size(800, 15_000)
	go func() { loaded <- w.load(a, orders) }()
	w.wait("some orders have expired", func() bool { return w.number("SELECT COUNT(*) FROM effects") > 50 })
	master, err := group.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := group.WaitForFailover(t.Context(), master); err != nil {
		t.Fatal(err)
	}
	took := time.Since(killed)
	w.settled(<-loaded, scanDelay)
	t.Logf("the replica took over after %v: %v %v", took.Round(time.Millisecond), a.seen.all(), b.seen.all())
}
