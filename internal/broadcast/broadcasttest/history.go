package broadcasttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/testbed/testbedtest"
)

// History is what buses were told to publish and what subscriptions delivered, in the
// order of both. [History.Check] holds one against the other. Every bus must be new, and
// publish by the History alone, so that the number of each message is known.
type History struct {
	base     time.Time
	speakers []*speaker
	watches  []*watch
}

// speaker is a bus with what it was told to publish: said[n-1] has the number n.
type speaker struct {
	bus broadcast.Bus

	mu     sync.Mutex
	said   []said
	topics []string // without repetition
}

type said struct {
	topic string
	at    time.Duration // before the call
}

// watch is what one subscription delivered.
type watch struct {
	name     string
	patterns []string

	mu    sync.Mutex
	heard []heard
	last  map[int]uint64 // the last number by speaker
}

type heard struct {
	at      time.Duration // after the call
	missed  broadcast.Reason
	speaker int // of a message
	number  uint64
	topic   string
}

// NewHistory returns an empty history of buses that run.
func NewHistory(buses ...broadcast.Bus) *History {
	h := &History{base: time.Now()}
	for _, b := range buses {
		h.speakers = append(h.speakers, &speaker{bus: b})
	}
	return h
}

// Say has bus i publish on a topic. That the message is dropped is part of the history.
func (h *History) Say(i int, topic string) {
	s := h.speakers[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, said{topic, time.Since(h.base)})
	if !slices.Contains(s.topics, topic) {
		s.topics = append(s.topics, topic)
	}
	_ = s.bus.Publish(topic, fmt.Sprint(i, " ", len(s.said)))
}

// Speak has every bus publish on one topic after the other, with a pause, until ctx ends.
func (h *History) Speak(ctx context.Context, wg *sync.WaitGroup, pause time.Duration, topics ...string) {
	for i := range h.speakers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				h.Say(i, topics[n%len(topics)])
				sleep(ctx, pause)
			}
		})
	}
}

// Watch subscribes at bus i and reads until the test ends, with a pause after each event.
func (h *History) Watch(t testing.TB, i int, pause time.Duration, patterns ...string) {
	t.Helper()
	s, err := h.speakers[i].bus.Subscribe(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{name: fmt.Sprintf("subscription %d at bus %d to %q", len(h.watches), i, patterns), patterns: patterns, last: map[int]uint64{}}
	h.watches = append(h.watches, w)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		defer s.Close()
		for {
			e, err := s.Next(ctx)
			if err != nil {
				if !errors.Is(err, context.Canceled) && !errors.Is(err, broadcast.ErrClosed) {
					t.Errorf("%s: Next = %v", w.name, err)
				}
				return
			}
			if err := w.hear(e, time.Since(h.base)); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
			if pause > 0 {
				sleep(ctx, pause)
			}
		}
	}()
}

func (w *watch) hear(e broadcast.Event, at time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Missed != nil {
		w.heard = append(w.heard, heard{at: at, missed: e.Missed.Reason})
		return nil
	}
	by, n, _ := strings.Cut(e.Message.Payload, " ")
	i, err := strconv.Atoi(by)
	number, err2 := strconv.ParseUint(n, 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	w.heard = append(w.heard, heard{at: at, speaker: i, number: number, topic: e.Message.Topic})
	w.last[i] = number
	if e.Message.ID.Seq != number {
		return fmt.Errorf("the message with the number %d is the bus's %dth", e.Message.ID.Seq, number)
	}
	return nil
}

// Check waits until everybody hears everybody again, and fails the test if what was
// heard is not what was promised. What harmed the buses must have ended.
func (h *History) Check(t testing.TB) {
	t.Helper()
	h.settle(t)
	for _, v := range h.violations() {
		testbedtest.Final(t, "%s", v)
	}
	t.Log(h.summary())
}

// settle has all speak until all have heard them.
func (h *History) settle(t testing.TB) {
	t.Helper()
	var goals []uint64
	for _, s := range h.speakers {
		goals = append(goals, uint64(len(s.said)))
	}
	until(t, "everybody hears everybody", func() bool {
		for i, s := range h.speakers {
			for _, topic := range s.topics {
				h.Say(i, topic)
			}
		}
		time.Sleep(20 * pause)
		return !slices.ContainsFunc(h.watches, func(w *watch) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			for i, goal := range goals {
				if w.last[i] <= goal {
					return true
				}
			}
			return false
		})
	})
}
