package broadcast_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/events/broadcast"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// harness opens buses of one server.
type harness struct {
	url         string
	connections sync.Map // by bus
}

// cases are the guarantees of the package.
var cases = []struct {
	name string
	run  func(t testing.TB, h *harness, topic string)
}{
	{"EverySubscriptionReceives", everySubscriptionReceives},
	{"TopicsAreSeparate", topicsAreSeparate},
	{"PayloadsAreUnchanged", payloadsAreUnchanged},
	{"OrderPerPublisher", orderPerPublisher},
	{"FirstEventIsANotice", firstEventIsANotice},
	{"LossIsNotified", lossIsNotified},
	{"SlowSubscriberDelaysNobody", slowSubscriberDelaysNobody},
	{"SubscriptionEnds", subscriptionEnds},
}

// conform runs the cases.
func conform(t *testing.T, url string) {
	t.Helper()
	h := &harness{url: url}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) { c.run(t, h, rand.Text()) })
		})
	}
}

// timeout bounds each wait of a case.
const timeout = 30 * time.Second

// reader is a subscription whose events wait for a test.
type reader struct{ events chan broadcast.Event }

// Read subscribes until the test ends. It returns after the first event, which must be a notice.
func read(t testing.TB, b *broadcast.Bus, topic string) *reader {
	t.Helper()
	r := &reader{make(chan broadcast.Event, 1<<16)}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var reading sync.WaitGroup
	reading.Go(func() {
		for e := range b.Subscribe(ctx, topic) {
			r.events <- e
		}
	})
	t.Cleanup(func() {
		stop()
		reading.Wait()
	})
	if e := r.next(t); !e.Missed {
		t.Fatalf("the first event is message %q", e.Payload)
	}
	return r
}

// Next returns the next event.
func (r *reader) next(t testing.TB) broadcast.Event {
	t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(timeout):
		t.Fatalf("no event in %v", timeout)
		return broadcast.Event{}
	}
}

// want fails unless the next events are these messages.
func (r *reader) want(t testing.TB, payloads ...string) {
	t.Helper()
	for _, want := range payloads {
		if e := r.next(t); e != (broadcast.Event{Payload: want}) {
			t.Fatalf("received %+.80v, want %.80q", e, want)
		}
	}
}

func publish(t testing.TB, b *broadcast.Bus, topic, payload string) {
	t.Helper()
	if err := b.Publish(t.Context(), topic, payload); err != nil {
		t.Fatalf("Publish(%s) = %v", topic, err)
	}
}

func everySubscriptionReceives(t testing.TB, h *harness, topic string) {
	buses := h.open(t, 3)
	var readers []*reader
	for _, b := range buses {
		readers = append(readers, read(t, b, topic), read(t, b, topic))
	}
	for i, b := range buses {
		publish(t, b, topic, strconv.Itoa(i))
		for _, r := range readers {
			r.want(t, strconv.Itoa(i))
		}
	}
}

func topicsAreSeparate(t testing.TB, h *harness, topic string) {
	b := h.open(t, 1)[0]
	one, two := read(t, b, topic), read(t, b, topic+".two")
	publish(t, b, topic+".two", "2")
	publish(t, b, topic, "1")
	publish(t, b, topic+".two", "end")
	one.want(t, "1")
	two.want(t, "2", "end")
}

func payloadsAreUnchanged(t testing.TB, h *harness, topic string) {
	buses := h.open(t, 2)
	r := read(t, buses[1], topic)
	for _, payload := range []string{"", " two words ", "a\r\nb\x00c\xff", `{"sku":"lamp"}`, "ä€😀", strings.Repeat("x", 1<<20)} {
		publish(t, buses[0], topic, payload)
		r.want(t, payload)
	}
}

// orderPerPublisher has all buses publish at the same time.
func orderPerPublisher(t testing.TB, h *harness, topic string) {
	const n = 80 // less than a subscription holds
	buses := h.open(t, 3)
	r := read(t, buses[0], topic)
	var publishing sync.WaitGroup
	defer publishing.Wait()
	for i, b := range buses {
		publishing.Go(func() {
			for k := range n {
				if err := b.Publish(t.Context(), topic, strconv.Itoa(i*n+k)); err != nil {
					t.Errorf("Publish = %v", err)
				}
			}
		})
	}
	next := []int{0, n, 2 * n}
	for range n * len(buses) {
		number, err := strconv.Atoi(r.next(t).Payload)
		if err != nil || next[number/n] != number {
			t.Fatalf("received %d, %v, want one of %v", number, err, next)
		}
		next[number/n]++
	}
}

// firstEventIsANotice subscribes while messages are published.
func firstEventIsANotice(t testing.TB, h *harness, topic string) {
	buses := h.open(t, 2)
	p := numbers(t, buses[1], topic)
	for range 20 {
		p.watch(t, buses[0]).message(t)
	}
}

// lossIsNotified interrupts two of three buses again and again.
func lossIsNotified(t testing.TB, h *harness, topic string) {
	buses := h.open(t, 3)
	p := numbers(t, buses[2], topic)
	first, second, other := p.watch(t, buses[0]), p.watch(t, buses[0]), p.watch(t, buses[1])
	for range testbedtest.Size(5, 50) {
		h.interrupt(t, buses[0])
		h.interrupt(t, buses[2]) // may lose the reply to a message, which must not be sent again
		first.notice(t)
		second.notice(t)
	}
	first.message(t)
	second.message(t)
	other.message(t)
}

func slowSubscriberDelaysNobody(t testing.TB, h *harness, topic string) {
	buses := h.open(t, 2)
	const n = 2000
	blocked, slow := make(chan struct{}), &reader{make(chan broadcast.Event, 2*n)}
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	reading.Go(func() {
		for e := range buses[0].Subscribe(ctx, topic) {
			slow.events <- e
			<-blocked
		}
	})
	slow.next(t)
	fast := read(t, buses[0], topic)
	for i := range n {
		publish(t, buses[1], topic, strconv.Itoa(i))
		fast.want(t, strconv.Itoa(i))
	}
	close(blocked)
	for next := 0; next < n; {
		e := slow.next(t)
		if e.Missed {
			return
		}
		if e.Payload != strconv.Itoa(next) {
			t.Fatalf("received %q without a notice, want %d", e.Payload, next)
		}
		next++
	}
}

func subscriptionEnds(t testing.TB, h *harness, topic string) {
	b := h.open(t, 1)[0]
	for range b.Subscribe(t.Context(), topic) {
		break
	}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		events := 0
		for range b.Subscribe(ctx, topic) {
			if events++; events == 1 {
				publish(t, b, topic, "not received")
				cancel()
			}
		}
		if cancel(); events != 1 {
			t.Fatalf("%d events, want the one before the end of the context", events)
		}
	}
}
