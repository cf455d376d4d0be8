package broadcast_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/events/broadcast"
)

// publisher publishes numbers from 1 on a topic until the test ends, faults or not.
type publisher struct {
	topic string

	mu     sync.Mutex
	begun  int          // the last number
	failed map[int]bool // numbers whose outcome is unknown
}

// numbers starts a publisher.
func numbers(t testing.TB, b *broadcast.Bus, topic string) *publisher {
	t.Helper()
	p := &publisher{topic: topic, failed: map[int]bool{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for ; ctx.Err() == nil; <-time.After(time.Millisecond) {
			p.mu.Lock()
			p.begun++
			n := p.begun
			p.mu.Unlock()
			if b.Publish(ctx, topic, strconv.Itoa(n)) != nil {
				p.mu.Lock()
				p.failed[n] = true
				p.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		stop()
		publishing.Wait()
	})
	return p
}

func (p *publisher) last() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// lost returns the first number between two that was published.
func (p *publisher) lost(after, before int) (n int, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := after + 1; n < before; n++ {
		if !p.failed[n] {
			return n, true
		}
	}
	return 0, false
}

// watch is a subscription to a publisher. It fails its test when a number is missing without a notice, or comes twice.
type watch struct {
	*reader

	p       *publisher
	before  int // the last number that may precede the subscription
	seen    int // the last number received
	noticed bool
}

// watch subscribes at a bus. All later numbers arrive, or a notice follows.
func (p *publisher) watch(t testing.TB, b *broadcast.Bus) *watch {
	t.Helper()
	r := read(t, b, p.topic)
	last := p.last()
	return &watch{reader: r, p: p, before: last, seen: last}
}

// number checks the next event.
func (w *watch) number(t testing.TB) (number int) {
	t.Helper()
	e := w.next(t)
	if e.Missed {
		w.noticed = true
		return 0
	}
	number, err := strconv.Atoi(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if n, lost := w.p.lost(w.seen, number); lost && !w.noticed {
		t.Fatalf("received %d after %d, and no notice that %d is missing", number, w.seen, n)
	}
	if number <= w.seen && number > w.before {
		t.Fatalf("received %d after %d", number, w.seen)
	}
	w.seen, w.noticed = max(w.seen, number), false
	return number
}

// notice reads until a notice.
func (w *watch) notice(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(timeout); w.number(t) != 0; {
		if time.Now().After(end) {
			t.Fatalf("no notice in %v", timeout)
		}
	}
}

// message reads until a number that is published after now.
func (w *watch) message(t testing.TB) {
	t.Helper()
	last, end := w.p.last(), time.Now().Add(timeout)
	for w.number(t) <= last {
		if time.Now().After(end) {
			t.Fatalf("no message in %v", timeout)
		}
	}
}
