package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

const kind = "order.expire"

var memConfig memindex.Config

// link is an index that several instances share, as over a network: it can be cut,
// and lose entries. It hides that the index is in the process.
type link struct {
	timeout.Index

	mu     sync.Mutex
	down   bool
	loses  bool          // entries, and reports success
	frail  map[int]bool  // instances that cannot claim
	mute   bool          // it sends no messages
	log    []string      // instances that claimed something
	puts   int           // calls of Schedule
	passes int           // that were granted
	lag    time.Duration // of Schedule
}

var errCut = errors.New("the test has cut the index off")

// client is the link as one instance has it.
type client struct {
	*link
	n         int
	instances string
}

func (l *link) set(f func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

func (l *link) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errCut
	}
	return nil
}

func (c client) stalls() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down || c.frail[c.n] {
		return errCut
	}
	return nil
}

func (c client) Schedule(ctx context.Context, kind, partition string, entries []timeout.Entry) error {
	if err := c.err(); err != nil {
		return err
	}
	c.mu.Lock()
	loses, lag := c.loses, c.lag
	c.puts++
	c.mu.Unlock()
	time.Sleep(lag)
	if loses {
		return nil
	}
	return c.Index.Schedule(ctx, kind, partition, entries)
}

func (c client) GrantPass(ctx context.Context, kind, partition string, every time.Duration) (bool, error) {
	if err := c.err(); err != nil {
		return false, err
	}
	granted, err := c.Index.GrantPass(ctx, kind, partition, every)
	if granted {
		c.set(func(l *link) { l.passes++ })
	}
	return granted, err
}

func (c client) Claim(ctx context.Context, s timeout.Shard, limit int) (timeout.Claim, error) {
	if err := c.stalls(); err != nil {
		return timeout.Claim{}, err
	}
	got, err := c.Index.Claim(ctx, s, limit)
	if len(got.Timers) > 0 {
		c.set(func(l *link) { l.log = append(l.log, c.instances) })
	}
	return got, err
}

func (c client) Wake(s timeout.Shard) <-chan time.Time {
	if c.mute {
		return nil
	}
	return c.Index.Wake(s)
}

// rig is a database and an index that instances share, in a bubble of fake time.
type rig struct {
	t     *testing.T
	store *memStore
	mem   *memindex.Index
	link  *link
	count *counter
	n     int
	done  []func()
}

// bubble runs a case on fake time and stops the instances that it has started.
func bubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	bubbleWith(t, func() memindex.Config { return memConfig }, f)
}

func bubbleWith(t *testing.T, cfg func() memindex.Config, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cfg())
		defer r.stop()
		f(r)
	})
}

func newRig(t *testing.T, cfg memindex.Config) *rig {
	t.Helper()
	x := memindex.New(cfg)
	return &rig{
		t: t, store: newMemStore(), mem: x, link: &link{Index: x, frail: map[int]bool{}},
		count: newCounter(),
	}
}

// queue returns an instance that does not run yet.
func (r *rig) queue(cfg timeout.Config) *timeout.Queue {
	r.t.Helper()
	r.n++
	cfg.Instance = fmt.Sprint("instance-", r.n)
	if cfg.Observer == nil {
		cfg.Observer = r.count
	}
	q, err := timeout.New(r.store, client{r.link, r.n, cfg.Instance}, cfg)
	if err != nil {
		r.t.Fatalf("New = %v", err)
	}
	return q
}

// run starts an instance, and returns what stops it.
func (r *rig) run(q *timeout.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Run = %v", err)
		}
	})
	r.done = append(r.done, stop)
	return stop
}

// start runs an instance with a handler.
func (r *rig) start(cfg timeout.Config, h timeout.Handler, o timeout.Options) (*timeout.Queue, func()) {
	r.t.Helper()
	q := r.queue(cfg)
	if err := q.Handle(kind, h, o); err != nil {
		r.t.Fatalf("Handle = %v", err)
	}
	return q, r.run(q)
}

func (r *rig) stop() {
	for _, stop := range r.done {
		stop()
	}
}

// schedule schedules and pushes ids for one moment.
func (r *rig) schedule(q *timeout.Queue, due time.Time, ids ...string) {
	r.t.Helper()
	var timers []timeout.Timer
	for _, id := range ids {
		timers = append(timers, timeout.Timer{Kind: kind, ID: id, Due: due})
	}
	push, err := q.Schedule(r.t.Context(), nil, timers...)
	if err != nil {
		r.t.Fatalf("Schedule = %v", err)
	}
	push()
}

// drained fails if a timer is left.
func (r *rig) drained() {
	r.t.Helper()
	if n := r.store.open(); n != 0 {
		r.t.Errorf("%d timers are left", n)
	}
}

// ids returns n of them.
func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("o-%05d", i)
	}
	return out
}

func TestMain(m *testing.M) { testbedtest.Main(m) }
