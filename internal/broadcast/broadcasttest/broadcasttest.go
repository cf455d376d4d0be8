// Package broadcasttest holds the conformance suite of [broadcast.Bus]. Every backend
// runs it, against a real server where it has one. The names of the cases are the
// promises of the contract, for documents to link to.
//
// A [Harness] tells the suite how to reach a backend and how to harm it. Every case has a
// network of its own, so that cases run in parallel, and every wait has a deadline, so
// that a broken backend fails instead of hanging. [History] is for load with faults.
package broadcasttest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/testbed/testbedtest"
)

// Harness describes one backend.
type Harness struct {
	// Open returns n buses that hear one another and nobody else, each as another process
	// has it, with queues of so many events; 0 is the default of the backend. The suite
	// runs them and ends them.
	Open func(t testing.TB, n, queue int) []broadcast.Bus

	// Interrupt makes one of them lose, at least for a moment, what others publish. It
	// need not wait until that is over.
	Interrupt func(t testing.TB, b broadcast.Bus)
}

type suiteCase struct {
	name string
	fn   func(t testing.TB, h Harness)
}

func cases() []suiteCase {
	return []suiteCase{
		{"EveryInstanceHears", everyInstanceHears},
		{"OrderPerOrigin", orderPerOrigin},
		{"TopicsAreApart", topicsAreApart},
		{"PatternsMatch", patternsMatch},
		{"OncePerSubscription", oncePerSubscription},
		{"PayloadsArriveAsTheyAre", payloadsArriveAsTheyAre},
		{"IDsIdentify", idsIdentify},
		{"InvalidIsRefused", invalidIsRefused},
		{"ConnectedComesFirst", connectedComesFirst},
		{"NothingBeforeRun", nothingBeforeRun},
		{"SlowIsToldHowMany", slowIsToldHowMany},
		{"SlowHarmsNobody", slowHarmsNobody},
		{"SlowHearsAgain", slowHearsAgain},
		{"ReadyAgreesWithNext", readyAgreesWithNext},
		{"CloseEndsASubscription", closeEndsASubscription},
		{"EndOfRunEndsSubscriptions", endOfRunEndsSubscriptions},
		{"EndOfTheContext", endOfTheContext},
		{"ConcurrentUse", concurrentUse},
		{"LossIsTold", lossIsTold},
		{"LossIsToldUnderLoad", lossIsToldUnderLoad},
	}
}

// Names are the names of the cases.
func Names() (names []string) {
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) { c.fn(t, h) })
		})
	}
}

const (
	patient = 30 * time.Second     // what a case waits for comes by then
	pause   = 2 * time.Millisecond // between two looks
)

// rig is a network of buses that run.
type rig struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // It bounds the case, and all calls of it.
	buses []broadcast.Bus
	stops []func() // end one bus each
}

// open returns n buses that all hear.
func open(t testing.TB, h Harness, n, queue int) rig {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
	t.Cleanup(cancel)
	r := rig{t: t, ctx: ctx, buses: h.Open(t, n, queue)}
	for _, b := range r.buses {
		r.stops = append(r.stops, running(t, b))
	}
	for _, b := range r.buses {
		Live(t, b)
	}
	return r
}

// running runs b until the test ends, or calls what it returns.
func running(t testing.TB, b broadcast.Bus) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run = %v, want nil at the end of its context", err)
			}
		case <-time.After(patient):
			t.Errorf("Run has not returned %v after the end of its context", patient)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Live waits until messages arrive at b.
func Live(t testing.TB, b broadcast.Bus) {
	t.Helper()
	until(t, "messages arrive", func() bool { return b.Stats().Live })
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !condition(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patient, what)
		}
	}
}

// publish has bus i say something.
func (r rig) publish(i int, topic, payload string) {
	r.t.Helper()
	if err := r.buses[i].Publish(topic, payload); err != nil {
		r.t.Fatalf("Publish(%s) = %v", topic, err)
	}
}

// arrived waits until n messages have been given to the subscriptions of the first bus.
func (r rig) arrived(n int) {
	r.t.Helper()
	until(r.t, strconv.Itoa(n)+" messages arrive", func() bool { return r.buses[0].Stats().Received >= uint64(n) })
}

// reader is a subscription in a test.
type reader struct {
	*broadcast.Subscription
	r rig
}

// subscribe returns a subscription at bus i that has read its first event.
func (r rig) subscribe(i int, patterns ...string) reader {
	r.t.Helper()
	s, err := r.buses[i].Subscribe(patterns...)
	if err != nil {
		r.t.Fatalf("Subscribe(%q) = %v", patterns, err)
	}
	rd := reader{s, r}
	if m := rd.missed(); m.Reason != broadcast.Connected {
		r.t.Fatalf("the first event is %+v, want Connected", m)
	}
	return rd
}

func (rd reader) event() broadcast.Event {
	rd.r.t.Helper()
	e, err := rd.Next(rd.r.ctx)
	if err != nil {
		rd.r.t.Fatalf("Next = %v", err)
	}
	return e
}

// message is the next event, which must be a message.
func (rd reader) message() broadcast.Message {
	rd.r.t.Helper()
	e := rd.event()
	if e.Missed != nil {
		rd.r.t.Fatalf("the next event is %+v, want a message", *e.Missed)
	}
	return e.Message
}

// missed is the next event, which must be none.
func (rd reader) missed() broadcast.Missed {
	rd.r.t.Helper()
	e := rd.event()
	if e.Missed == nil {
		rd.r.t.Fatalf("the next event is %+v, want a Missed", e.Message)
	}
	return *e.Missed
}

// expect checks the payloads of the next messages.
func (rd reader) expect(payloads ...string) {
	rd.r.t.Helper()
	for _, want := range payloads {
		if m := rd.message(); m.Payload != want {
			rd.r.t.Fatalf("got %q on %s, want %q", m.Payload, m.Topic, want)
		}
	}
}

// connected reads until messages arrive again, and counts the messages before.
func (rd reader) connected() (n int) {
	rd.r.t.Helper()
	for {
		switch e := rd.event(); {
		case e.Missed == nil:
			n++
		case e.Missed.Reason == broadcast.Connected:
			return n
		}
	}
}

func wantErr(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("error = %v, want %v", got, want)
	}
}

// series is the payloads from first to last.
func series(first, last int) (all []string) {
	for i := first; i <= last; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}
