package timeouttest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/timeout"
)

func claimLendsOnce(t *testing.T, h IndexHarness) {
	const claimers, n = 8, 2000
	clients := benches(t, h, claimers)
	clients[0].put(clients[0].now().Add(-time.Second), series(n)...)
	got := make([][]lent, claimers)
	var wg sync.WaitGroup
	for i, b := range clients {
		wg.Go(func() {
			for _, s := range b.Shards(b.kind, lane) {
				for {
					c, err := b.Claim(b.ctx, s, 16, long)
					if err != nil {
						t.Errorf("Claim = %v", err)
						return
					}
					if len(c.Timers) == 0 {
						break
					}
					for _, timer := range c.Timers {
						got[i] = append(got[i], lent{timer, s, c.Now})
					}
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(series(n), names(slices.Concat(got...))); diff != "" {
		t.Errorf("lent (-scheduled +got):\n%s", diff)
	}
}

func claimHasAnIDOnce(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), "x")
	first := b.await(1, short)
	b.put(b.now(), "x")
	for end := time.Now().Add(patient); ; {
		claims := b.claim(0, long)
		if now := b.now(); len(claims) == 0 && !now.Before(first[0].now.Add(short)) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the clock of the index stands still")
		}
		time.Sleep(pause)
	}
	if got := names(b.claim(10, long)); len(got) != 1 {
		t.Errorf("one claim lent %v", got)
	}
	b.holds(0, 1)
}

func reclaimCountsTheAttempt(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	at := b.now()
	b.put(at, "x")
	last := b.await(1, short)[0]
	for want := 2; want <= 4; want++ {
		got := b.await(1, short)[0]
		if got.ID != "x" || got.Attempt != want || got.Token <= last.Token || !got.Due.Equal(at) {
			t.Errorf("lent %+v, want attempt %d, a token above %d and %v", got.Claimed, want, last.Token, at)
		}
		if got.now.Before(last.now.Add(short)) {
			t.Errorf("lent %v after the claim before, whose lease is %v", got.now.Sub(last.now), short)
		}
		last = got
	}
	b.holds(0, 1)
}

func reclaimedComeFirst(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	s := b.Shards(b.kind, lane)[0]
	ids := within(b, s, 3)
	b.put(b.now(), ids[0])
	b.await(1, short)
	b.put(b.now().Add(-time.Hour), ids[1], ids[2])
	for end := time.Now().Add(patient); ; {
		c, err := b.Claim(b.ctx, s, 1, long)
		if err != nil || len(c.Timers) != 1 {
			t.Fatalf("Claim = %+v, %v; want one timer", c, err)
		}
		if got := c.Timers[0]; got.ID == ids[0] {
			return
		}
		if _, err := b.Return(b.ctx, s, c.Timers, []time.Time{c.Timers[0].Due}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("pending timers keep one waiting whose lease has ended")
		}
		time.Sleep(pause)
	}
}

// within returns ids that share a shard.
func within(b bench, s timeout.Shard, n int) (ids []string) {
	b.t.Helper()
	for _, id := range series(100 * n) {
		b.put(time.UnixMilli(0), id)
		c, err := b.Claim(b.ctx, s, 1, long)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(c.Timers) == 1 {
			ids = append(ids, id)
			b.Ack(b.ctx, s, c.Timers)
		}
		b.Remove(b.ctx, b.kind, lane, []string{id})
		if len(ids) == n {
			return ids
		}
	}
	b.t.Fatalf("%d ids in shard %v", len(ids), s)
	return nil
}

func extendKeepsTheClaim(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), "x")
	claims := b.await(1, short)
	before := b.now()
	for range 3 { // twice within a millisecond as well
		if n := b.extend(claims, 3*short); n != 1 {
			t.Fatalf("Extend = %d, want 1", n)
		}
	}
	if n := b.extend(claims, time.Millisecond); n != 1 {
		t.Errorf("Extend to an earlier moment = %d, want 1", n)
	}
	again := b.await(1, long)[0]
	if again.now.Before(before.Add(3 * short)) {
		t.Errorf("lent again %v after it was extended by %v", again.now.Sub(before), 3*short)
	}
	if n := b.extend(claims, long); n != 0 {
		t.Errorf("Extend = %d once the timer is lent again, want 0", n)
	}
}

func ackEndsTheClaim(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), series(10)...)
	claims := b.await(10, short)
	if n := b.ack(claims); n != 10 {
		t.Errorf("Ack = %d, want 10", n)
	}
	if n := b.ack(claims); n != 0 {
		t.Errorf("Ack for the second time = %d, want 0", n)
	}
	b.holds(0, 0)
}

func staleAckRemovesNothing(t *testing.T, h IndexHarness) {
	clients := benches(t, h, 2)
	slow, next := clients[0], clients[1]
	slow.put(slow.now(), "x")
	old := slow.await(1, short)
	claims := next.await(1, long)
	if n := slow.ack(old); n != 0 {
		t.Errorf("stale Ack = %d, want 0", n)
	}
	if n := slow.giveBack(old, slow.now()); n != 0 {
		t.Errorf("stale Return = %d, want 0", n)
	}
	if n := slow.extend(old, long); n != 0 {
		t.Errorf("stale Extend = %d, want 0", n)
	}
	next.holds(0, 1)
	if n := next.ack(claims); n != 1 {
		t.Errorf("Ack = %d, want 1", n)
	}
	next.holds(0, 0)
}

func returnIsDueAgain(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), "x", "y")
	claims := b.await(2, long)
	b.holds(0, 2)
	at := b.now().Add(short)
	if n := b.giveBack(claims, at); n != 2 {
		t.Errorf("Return = %d, want 2", n)
	}
	b.holds(2, 0)
	for _, c := range b.await(2, long) {
		if c.Attempt != 1 || !c.Due.Equal(at) || c.now.Before(at) {
			t.Errorf("lent %+v at %v, want attempt 1 at %v", c.Claimed, c.now, at)
		}
	}
	if n := b.giveBack(claims, at); n != 0 {
		t.Errorf("Return for the second time = %d, want 0", n)
	}
	b.holds(0, 2)
}

func returnLeavesANewerHint(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), "x")
	claims := b.await(1, long)
	at := b.now().Add(time.Hour)
	b.put(at, "x")
	if n := b.giveBack(claims, b.now()); n != 1 {
		t.Errorf("Return = %d, want 1", n)
	}
	if s, err := b.Stats(b.ctx, b.kind, lane); err != nil || s.Pending != 1 || s.Leased != 0 || !s.Oldest.Equal(at) {
		t.Errorf("Stats = %+v, %v; want one at %v", s, err, at)
	}
}
