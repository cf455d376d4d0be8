package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// oneByOne is expire, for a world in which no two orders expire at once: of a batch that
// is halved most timers are in hand, and not begun with.
func oneByOne(n *node) timeout.Handler {
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		if len(batch) > 1 {
			return nil, errors.New("one at a time")
		}
		return n.expire(ctx, batch)
	}
}

// Instances that have much in hand are replaced one after the other. Neither a lease nor a
// sweep brings back within the time of the test what one of them forgets when it ends.
func TestInstancesReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	teller, _ := w.start(nodeConfig{Name: "teller", Canary: true})
	type instance struct {
		*node
		stop func()
	}
	born := 0
	next := func() (i instance) {
		born++
		i.node, i.stop = w.start(nodeConfig{
			Name: fmt.Sprint("instance-", born), Hold: 20 * time.Millisecond, handler: oneByOne,
			Options: timeout.Options{Batch: 20, Concurrency: 2, Lease: time.Hour, Grace: time.Hour},
		})
		return i
	}
	instances := []instance{next(), next(), next()}
	returned := 0
	replace := func() {
		old := instances[0]
		before := old.seen.get("returned")
		old.stop()
		returned += old.seen.get("returned") - before
		instances = append(instances[1:], next())
	}
	placed, replaced := w.during(teller, testbedtest.Size(400, 5_000), 200*time.Millisecond, replace)
	for ; returned == 0 && replaced < 20; replaced++ { // placing them was so quick that hardly any was due
		time.Sleep(100 * time.Millisecond)
		replace()
	}
	w.settled(placed, 0)
	t.Logf("%d instances replaced, which gave back %d timers", replaced, returned)
	if returned == 0 {
		t.Error("nothing was given back: no instance had anything in hand when it ended")
	}
}
