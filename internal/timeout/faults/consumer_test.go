package faults_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// Consumers are killed with timers in progress, one after the other, and others start.
func TestConsumersKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduler, _ := w.start(nodeConfig{Name: "scheduler", Canary: true})
	var alive []*process
	born := 0
	bear := func() *process {
		born++
		return w.fork(nodeConfig{
			Name: fmt.Sprint("consumer-", born), Hold: 100 * time.Millisecond, // so that they die with something in progress
			Options: timeout.Options{Batch: 20},
		})
	}
	for range 3 {
		alive = append(alive, bear())
	}
	every := time.Duration(testbedtest.Size(700, 2000)) * time.Millisecond
	placed, killed := w.during(scheduler, testbedtest.Size(800, 30_000), every, func() {
		victim := rand.N(len(alive))
		alive[victim].end()
		alive[victim] = bear()
	})
	w.settled(placed, scanDelay)
	t.Logf("%d consumers killed", killed)
	for _, p := range alive {
		t.Log(p.stop())
	}
}

// A consumer is paused with a batch in progress. The overdue scan of another takes the batch
// over; when the first one resumes, it changes nothing.
func TestPausedConsumerHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduler, _ := w.start(nodeConfig{Name: "scheduler", Canary: true})
	stalls := w.fork(nodeConfig{Name: "is paused", Hold: 8 * time.Second})
	const placed = 40
	if err := scheduler.place(t.Context(), 0, time.Now().Add(least), names("held", placed)...); err != nil {
		t.Fatal(err)
	}
	stalls.await("holding")
	if err := testbed.Suspend(stalls.Process); err != nil {
		t.Fatal(err)
	}
	other, _ := w.start(nodeConfig{Name: "other"})
	w.waitFor(promised(scanDelay), "another one has taken everything over", func() bool {
		return w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'") == 0
	})
	if err := testbed.Continue(stalls.Process); err != nil {
		t.Fatal(err)
	}
	counted := stalls.stop()
	w.settled(placed, 0)
	t.Logf("what it did %v; the other one %v", counted, other.seen.all())
	if n := w.number("SELECT COUNT(*) FROM effects WHERE node = 'other'"); n != placed || counted["settled"] == 0 {
		t.Errorf("the other one expired %d of %d orders, and the paused one settled %d: it did not stop with timers in progress",
			n, placed, counted["settled"])
	}
}

// Nobody is there when timers become due.
func TestAllProcessesDownAcrossTheDueTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduler, stop := w.start(nodeConfig{Name: "scheduler", Canary: true})
	consumers := []*process{w.fork(nodeConfig{Name: "one"}), w.fork(nodeConfig{Name: "two"})}
	placed := w.load(scheduler, testbedtest.Size(300, 10_000)) + 10
	for _, p := range consumers {
		p.end()
	}
	if err := scheduler.place(t.Context(), 0, time.Now().Add(time.Second), names("last", 10)...); err != nil { // it expires nothing itself
		t.Fatal(err)
	}
	stop()
	down := w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'")
	w.wait("everything is due", func() bool { return w.number("SELECT MAX(due) < "+dbTime+" FROM orders") == 1 })
	next := w.fork(nodeConfig{Name: "next"})
	w.settled(placed, scanDelay)
	t.Logf("%d of %d became due while nobody was there: %v", down, placed, next.stop())
	if down == 0 {
		t.Error("all orders had expired before everybody was down")
	}
}
