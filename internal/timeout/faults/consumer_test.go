package faults_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// Consumers die with what they have in hand, one after the other, and others come.
func TestConsumersKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	teller, _ := w.start(nodeConfig{Name: "teller", Canary: true})
	var alive []*process
	const lease = 2 * time.Second
	born := 0
	bear := func() *process {
		born++
		return w.fork(nodeConfig{
			Name: fmt.Sprint("consumer-", born), Hold: 100 * time.Millisecond, // so that they die with something in hand
			Options: timeout.Options{Batch: 20, Lease: lease},
		})
	}
	for range 3 {
		alive = append(alive, bear())
	}
	every := time.Duration(testbedtest.Size(700, 2000)) * time.Millisecond
	placed, killed := w.during(teller, testbedtest.Size(800, 30_000), every, func() {
		victim := rand.N(len(alive))
		alive[victim].end()
		alive[victim] = bear()
	})
	w.settled(placed, lease+swept)
	t.Logf("%d consumers killed", killed)
	for _, p := range alive {
		t.Log(p.stop())
	}
}

// A consumer stops for longer than its lease with a batch in hand. Others take the batch
// over; when it goes on, it changes nothing, and its answers find nothing.
func TestConsumerStopsBeyondItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	teller, _ := w.start(nodeConfig{Name: "teller", Canary: true})
	const lease = time.Second
	options := timeout.Options{Lease: lease}
	stalls := w.fork(nodeConfig{Name: "stalls", Hold: 8 * time.Second, Options: options})
	const placed = 40
	if err := teller.place(t.Context(), 0, time.Now().Add(least), names("held", placed)...); err != nil {
		t.Fatal(err)
	}
	stalls.await("holding")
	if err := testbed.Suspend(stalls.Process); err != nil {
		t.Fatal(err)
	}
	other, _ := w.start(nodeConfig{Name: "other", Options: options})
	w.waitFor(promised(lease+swept), "another one has taken everything over", func() bool {
		return w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'") == 0
	})
	w.wait("no lease is left", func() bool {
		stats, err := other.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(stats) == 1 && !stats[0].Unindexed && stats[0].Leased == 0 && stats[0].Pending == 0
	})
	if err := testbed.Continue(stalls.Process); err != nil {
		t.Fatal(err)
	}
	counted := stalls.stop()
	w.settled(placed, 0)
	t.Logf("what it did %v; the other one %v", counted, other.seen.all())
	if counted["stale"] == 0 && counted["failed: ack"] == 0 { // of a call that fails nobody hears how it ended
		t.Error("no ack was stale: it did not stop with timers in hand")
	}
}

// Nobody is there when timers become due.
func TestAllProcessesDownAcrossTheDueTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	teller, stop := w.start(nodeConfig{Name: "teller", Canary: true})
	consumers := []*process{w.fork(nodeConfig{Name: "one"}), w.fork(nodeConfig{Name: "two"})}
	placed := w.load(teller, testbedtest.Size(300, 10_000)) + 10
	for _, p := range consumers {
		p.end()
	}
	if err := teller.place(t.Context(), 0, time.Now().Add(time.Second), names("last", 10)...); err != nil { // it expires nothing itself
		t.Fatal(err)
	}
	stop()
	down := w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'")
	w.wait("everything is due", func() bool { return w.number("SELECT MAX(due) < "+dbTime+" FROM orders") == 1 })
	next := w.fork(nodeConfig{Name: "next"})
	w.settled(placed, swept)
	t.Logf("%d of %d became due while nobody was there: %v", down, placed, next.stop())
	if down == 0 {
		t.Error("all orders had expired before everybody was down")
	}
}
