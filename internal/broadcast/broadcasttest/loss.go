package broadcasttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/testbed/testbedtest"
)

// lossIsTold takes the connection of a bus: all of its subscriptions are told, also one
// that does not read, in the order of what they hear.
func lossIsTold(t testing.TB, h Harness) {
	if h.Interrupt == nil {
		t.Skip("nothing can be lost")
	}
	r := open(t, h, 2, room)
	var readers []reader
	for i := range 3 {
		readers = append(readers, r.subscribe(0, fmt.Sprint("t", i), "all"))
	}
	full := r.subscribe(0, "full")
	r.publish(1, "all", "before")
	for range 2 * room {
		r.publish(1, "full", "x")
	}
	r.arrived(1 + 2*room)
	h.Interrupt(t, r.buses[0])
	for _, rd := range readers {
		if n := rd.connected(); n != 1 {
			t.Errorf("%d messages before the notice, want 1", n)
		}
	}
	r.publish(1, "all", "after")
	for _, rd := range readers {
		for { // a backend may say more than once that something may have been lost
			if e := rd.event(); e.Missed == nil {
				if e.Message.Payload != "after" {
					t.Errorf("%q follows the notice", e.Message.Payload)
				}
				break
			}
		}
	}
	for range room {
		full.message()
	}
	if m := full.missed(); m.Reason != broadcast.Connected || m.Count != 0 {
		t.Errorf("%+v in a queue that was full, want Connected and no number", m)
	}
	if s := r.buses[0].Stats(); s.Losses == 0 {
		t.Errorf("%+v after a loss", s)
	}
}

// lossIsToldUnderLoad interrupts buses again and again while all speak, and holds what
// everybody heard against what was said.
func lossIsToldUnderLoad(t testing.TB, h Harness) {
	if h.Interrupt == nil {
		t.Skip("nothing can be lost")
	}
	r := open(t, h, 3, 64)
	history := NewHistory(r.buses...)
	for i := range r.buses {
		history.Watch(t, i, 0, "*")
		history.Watch(t, i, 0, "a.*")
		history.Watch(t, i, 0, "b")
		history.Watch(t, i, 5*time.Millisecond, "*") // too slow
	}
	ctx, cancel := context.WithTimeout(r.ctx, time.Duration(testbedtest.Size(1, 20))*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	history.Speak(ctx, &wg, 300*time.Microsecond, "a.x", "a.y", "b")
	for i := 0; ctx.Err() == nil; i++ {
		h.Interrupt(t, r.buses[i%2]) // the third one is left in peace
		sleep(ctx, 50*time.Millisecond)
	}
	wg.Wait()
	history.Check(t)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
