package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// orders is what the timers are about: the handler's own rows, which decide.
type orders struct {
	mu      sync.Mutex
	due     map[string]time.Time // of open ones
	settled map[string]int       // by effect of a timer
	early   int
	paid    map[string]bool
}

// expire has its effect once, and never before the time, as a conditional UPDATE has.
func (o *orders) expire(id string) timeout.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	due, open := o.due[id]
	switch {
	case !open:
		return timeout.Done()
	case time.Now().Before(due): // it was moved after the claim was loaded
		return timeout.NotDue(due)
	}
	delete(o.due, id)
	o.settled[id]++
	return timeout.Done()
}

// punctual counts timers that a handler gets before their due time.
func (o *orders) punctual(batch []timeout.Fired) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range batch {
		if time.Now().Before(f.Due) {
			o.early++
		}
	}
}

// TestInvariants runs random histories of schedules, cancellations, moves, deaths, wipes, cuts and pauses over several
// instances and a canary, and lets them settle. Then each due timer has been handled (I1), with one effect (I2), and
// never early (I3). This holds however late handlers answered (I4), and whatever the index still had (I5). No canary
// has claimed anything (I6).
func TestInvariants(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testbedtest.Size(15, 1000)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { history(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

type world struct {
	*rig
	rnd    *rand.Rand
	orders orders
	canary *timeout.Queue
	stops  []func()
	next   int
}

func history(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	skew := time.Duration(rnd.Int64N(int64(4*time.Second))) - 2*time.Second
	r := newRig(t, memindex.Config{Now: func() time.Time { return time.Now().Add(skew) }})
	defer r.stop()
	w := &world{rig: r, rnd: rnd}
	w.orders = orders{due: map[string]time.Time{}, settled: map[string]int{}, paid: map[string]bool{}}
	w.canary = r.queue(timeout.Config{Canary: true})
	r.run(w.canary)
	for range 3 {
		w.instance()
	}
	for range 400 {
		w.step()
		time.Sleep(time.Duration(rnd.Int64N(int64(50 * time.Millisecond))))
	}
	w.rest()
}

// instance starts one whose handler is slow, fails, panics or is paused now and then.
func (w *world) instance() {
	lock := sync.Mutex{}
	rnd := rand.New(rand.NewPCG(w.rnd.Uint64(), 2))
	_, stop := w.start(timeout.Config{Entries: 64}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		w.orders.punctual(batch)
		lock.Lock()
		luck, slow := rnd.IntN(20), time.Duration(rnd.Int64N(int64(20*time.Millisecond)))
		lock.Unlock()
		time.Sleep(slow)
		switch luck {
		case 0:
			return nil, errors.New("a deadlock")
		case 1:
			panic("a bug")
		case 2:
			return nil, timeout.ErrUnavailable
		case 3:
			time.Sleep(6 * time.Second) // longer than the overdue scan waits
		}
		out := make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			out[i] = w.orders.expire(f.ID)
		}
		return out, nil
	}, timeout.Options{Batch: 8, Attempts: 1000})
	w.stops = append(w.stops, stop)
}

// step does something that can happen. Failures of the database are answered as by a client:
// what failed did not happen.
func (w *world) step() {
	switch k := w.rnd.IntN(40); {
	case k < 24:
		w.place()
	case k < 28:
		w.pay()
	case k < 31:
		w.move()
	case k == 31:
		w.mem.Wipe()
	case k == 32:
		w.link.set(func(l *link) { l.down = !l.down })
	case k == 33:
		w.link.set(func(l *link) { l.loses = !l.loses })
	case k == 34:
		w.store.setDown(w.rnd.IntN(3) == 0)
	case k == 36: // an instance is killed with timers in progress
		w.mem.Claim(w.t.Context(), w.mem.Shards(kind, timeout.Base)[0], 5)
	case k == 37:
		w.stops[0]()
		w.stops = w.stops[1:]
		w.instance()
	}
}

func (w *world) place() {
	id := fmt.Sprint("o-", w.next)
	w.next++
	due := time.UnixMilli(time.Now().UnixMilli() + w.rnd.Int64N(5000))
	push, err := w.canary.Schedule(w.t.Context(), nil, timeout.Timer{Kind: kind, ID: id, Due: due})
	if err != nil {
		return
	}
	w.orders.mu.Lock()
	w.orders.due[id] = due
	w.orders.mu.Unlock()
	if w.rnd.IntN(10) > 0 { // or its scheduler dies
		push()
	}
}

// some returns an open order.
func (w *world) some() (string, bool) {
	if w.next == 0 {
		return "", false
	}
	id := fmt.Sprint("o-", w.rnd.IntN(w.next))
	w.orders.mu.Lock()
	defer w.orders.mu.Unlock()
	_, open := w.orders.due[id]
	return id, open
}

func (w *world) pay() {
	id, open := w.some()
	if !open {
		return
	}
	if err := w.canary.Cancel(w.t.Context(), nil, kind, id); err != nil {
		return
	}
	w.orders.mu.Lock()
	if _, still := w.orders.due[id]; still {
		delete(w.orders.due, id)
		w.orders.paid[id] = true
	}
	w.orders.mu.Unlock()
}

func (w *world) move() {
	id, open := w.some()
	if !open {
		return
	}
	due := time.UnixMilli(time.Now().UnixMilli() + w.rnd.Int64N(8000))
	w.orders.mu.Lock()
	defer w.orders.mu.Unlock() // order and timer change in one transaction
	if _, still := w.orders.due[id]; !still {
		return
	}
	push, err := w.canary.Reschedule(w.t.Context(), nil, kind, id, due)
	if err != nil {
		return
	}
	w.orders.due[id] = due
	push()
}

// rest heals everything and waits until all that was due must have been handled.
func (w *world) rest() {
	w.t.Helper()
	w.link.set(func(l *link) { l.down, l.loses = false, false })
	w.store.setDown(false)
	time.Sleep(2 * time.Minute)
	w.stop()
	w.orders.mu.Lock()
	defer w.orders.mu.Unlock()
	if len(w.orders.due) > 0 {
		w.t.Errorf("%d of %d timers were lost: %v", len(w.orders.due), w.next, w.orders.due)
	}
	for id, n := range w.orders.settled {
		if n != 1 || w.orders.paid[id] {
			w.t.Errorf("%s: %d effects, paid: %t", id, n, w.orders.paid[id])
		}
	}
	if w.orders.early > 0 {
		w.t.Errorf("%d timers came early", w.orders.early)
	}
	w.drained()
	for _, instance := range w.link.log {
		if instance == "instance-1" {
			w.t.Error("the canary has claimed a timer")
		}
	}
	if pending, err := w.mem.Pending(context.WithoutCancel(w.t.Context()), kind, timeout.Base); pending > 0 || err != nil {
		w.t.Errorf("%d in the index at rest, %v", pending, err)
	}
}
