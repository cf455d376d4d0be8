package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// oneByOne is expire for a world in which no two orders expire at once. If it halved a batch, most of its timers would
// wait for the handler.
func oneByOne(n *node) timeout.Handler {
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		if len(batch) > 1 {
			return nil, errors.New("one at a time")
		}
		return n.expire(ctx, batch)
	}
}

// blind is a store whose overdue scans find nothing.
type blind struct{ timeout.Store }

func (blind) ClaimOverdue(context.Context, string, string, time.Time, time.Time, int) ([]timeout.Row, error) {
	return nil, nil
}

// Instances with many timers in progress are replaced one after the other. No overdue scan finds timers that an
// instance does not requeue.
func TestInstancesReplaced(t *testing.T) {
	t.Parallel()
	for tries := 1; !instancesReplaced(t); tries++ {
		if tries == 10 {
			t.Fatal("Redis takes no timers back in time, again and again")
		}
	}
}

// instancesReplaced judges nothing if Redis was too slow for an instance that requeued its timers in progress. The
// observer counts such errors, and nothing else returns these timers here.
func instancesReplaced(t *testing.T) (judged bool) {
	t.Helper()
	w := newWorld(t)
	scheduler, _ := w.start(nodeConfig{Name: "scheduler", Canary: true})
	type instance struct {
		*node
		stop func()
	}
	born := 0
	next := func() (i instance) {
		born++
		i.node, i.stop = w.start(nodeConfig{
			Name: fmt.Sprint("instance-", born), Hold: 20 * time.Millisecond, handler: oneByOne,
			Options: timeout.Options{Batch: 20}, store: func(s timeout.Store) timeout.Store { return blind{s} },
		})
		return i
	}
	instances := []instance{next(), next(), next()}
	returned, refused := 0, 0
	replace := func() {
		old := instances[0]
		before := old.seen.get("nacked")
		old.stop()
		returned += old.seen.get("nacked") - before
		refused += old.seen.get("failed: requeue") + old.seen.get("failed: claim")
		instances = append(instances[1:], next())
	}
	placed, replaced := w.during(scheduler, testbedtest.Size(400, 5_000), 200*time.Millisecond, replace)
	for ; returned == 0 && replaced < 20; replaced++ { // placing them was so quick that hardly any was due
		time.Sleep(100 * time.Millisecond)
		replace()
	}
	within(t.Context(), promised(0), func() bool { return w.number("SELECT COUNT(*) FROM orders WHERE status = 'PENDING'") == 0 })
	refused += scheduler.seen.get("failed: put entries") + scheduler.seen.get("dropped") // nobody looks for these in time
	for _, i := range instances {
		refused += i.seen.get("failed: requeue") + i.seen.get("failed: claim")
	}
	t.Logf("%d instances replaced, which requeued %d timers; %d calls of Redis failed", replaced, returned, refused)
	if refused > 0 {
		early := w.number("SELECT COUNT(*) FROM effects e JOIN orders o ON o.id = e.id WHERE e.at < o.due")
		double := w.number("SELECT COUNT(*) FROM (SELECT id FROM effects GROUP BY id HAVING COUNT(*) > 1) twice")
		if early > 0 || double > 0 {
			t.Errorf("early %d, double %d", early, double)
		}
		return false
	}
	w.settled(placed, 0)
	if returned == 0 {
		t.Error("nothing was requeued: no instance had anything in progress when it ended")
	}
	return true
}
