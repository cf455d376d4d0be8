package events_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// instance is one of several that share a log.
type instance struct {
	*events.Publisher

	log  *testLog
	feed *events.Feed
}

// join starts an instance on a log until the test ends.
func join(t *testing.T, log *testLog, name string, c events.FeedConfig, p events.PublisherConfig) *instance {
	t.Helper()
	feed, err := events.NewFeed(log, c)
	if err != nil {
		t.Fatal(err)
	}
	p.Instance = name
	i := &instance{events.NewPublisher(log, p), log, feed}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{feed.Run, i.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
	return i
}

// testLog is how one instance sees the log that it shares with the others.
type testLog struct {
	*shared

	opens      chan struct{} // if not nil, the latest entries are read when it is closed
	turns      chan struct{} // if not nil, each read of what is new takes one
	away       atomic.Bool   // appending fails
	unreadable atomic.Bool   // reading fails
	calls      atomic.Int64
}

// shared is a log that can lose its data.
type shared struct{ log atomic.Pointer[memlog.Log] }

func newShared() *shared {
	s := new(shared)
	s.wipe()
	return s
}

// wipe replaces the log by an empty one, once time has passed, as IDs contain it.
func (s *shared) wipe() {
	time.Sleep(time.Millisecond)
	s.log.Store(memlog.New())
}

// write appends texts, as another instance would.
func (s *shared) write(t *testing.T, lost bool, texts ...string) {
	t.Helper()
	if err := s.log.Load().Append(t.Context(), events.Batch{Writer: rand.Text(), Number: 1, Lost: lost, Texts: texts}); err != nil {
		t.Fatal(err)
	}
}

var errAway = errors.New("the log is unavailable")

func (l *testLog) Append(ctx context.Context, b events.Batch) error {
	l.calls.Add(1)
	if l.away.Load() {
		return errAway
	}
	return l.log.Load().Append(ctx, b)
}

func (l *testLog) Latest(ctx context.Context, n int) ([]events.Entry, error) {
	if l.unreadable.Load() {
		return nil, errAway
	}
	if l.opens != nil {
		select {
		case <-l.opens:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return l.log.Load().Latest(ctx, n)
}

// Next waits for a second at most, so that a wipe is noticed.
func (l *testLog) Next(ctx context.Context, id events.ID, n int) ([]events.Entry, error) {
	if l.turns != nil {
		select {
		case <-l.turns:
		case <-ctx.Done():
			return nil, nil
		}
		n = 1
	}
	if l.unreadable.Load() {
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return l.log.Load().Next(ctx, id, n)
}

// fleet starts so many instances that share a log, in a bubble.
func fleet(t *testing.T, n int, c events.FeedConfig) (*shared, []*instance) {
	t.Helper()
	log := newShared()
	all := make([]*instance, n)
	for i := range all {
		all[i] = join(t, &testLog{shared: log}, fmt.Sprint("shop-", i+1), c, events.PublisherConfig{})
	}
	synctest.Wait()
	return log, all
}

// appended waits, in a bubble, until what was published is in the log and read.
func appended() {
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
}

// listen listens until the test ends.
func (i *instance) listen(t *testing.T, f events.Filter, lastID string) *events.Listener {
	t.Helper()
	l, err := i.feed.Listen(f, lastID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// receive returns the notices that come until nothing has come for a second.
func receive(t *testing.T, l *events.Listener) (all []events.Notice) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		some, err := l.Next(ctx)
		cancel()
		if err != nil {
			return all
		}
		all = append(all, some...)
	}
}

// said returns what notices say, in short: orders by their ids, the others by their types, and resets by their reasons.
func said(notices []events.Notice) (all []string) {
	for _, n := range notices {
		switch {
		case n.Reset != "":
			all = append(all, string(n.Reset))
		case n.Event.Order != nil:
			all = append(all, n.Event.Order.ID)
		default:
			all = append(all, string(n.Event.Type))
		}
	}
	return all
}

// wantSaid fails the test unless the listener is notified that, and nothing else.
func wantSaid(t *testing.T, l *events.Listener, want ...string) []events.Notice {
	t.Helper()
	notices := receive(t, l)
	if got := said(notices); !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	return notices
}

// place publishes an order.
func (i *instance) place(id string) {
	i.Order(events.Order{ID: id, CustomerID: "c1", Status: "PENDING"})
}
