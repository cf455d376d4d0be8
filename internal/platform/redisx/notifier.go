package redisx

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Notifier receives what scripts push to a client object: a Locker, a Semaphore, a read/write lock or a condition. PROCESS is
// the name of the Notifier, so a process may have several.
//
// How to use it:
//
//	n := redisx.NewNotifier(rdb, prefix, ttl, nil) // prefix as "shop:lock:"; it subscribes when it is first needed
//	id := n.NewID()                             // PROCESS-NUMBER-TTL, unique: the name of one wait, and the owner of its grant
//	pushes, leave := n.Join(ctx, id)            // before the script runs: a push can be faster than the reply
//	defer leave()
//	script.Run(..., n.Channels(), id, n.Stamp(time.Now()), ...)
//	for {
//		select {
//		case push := <-pushes:              // "": something may have been missed, run the script again
//		case <-recheck.C:                   // at most 1 s: run the script again, with the same id and a new stamp
//		case <-ctx.Done():                  // abandon id
//		}
//	}
//
// A script wakes the waiter ID by
//
//	redis.call('PUBLISH', CHANNELS .. string.match(ID, '^[^-]+'), ID .. ' ' .. PAYLOAD)
//
// and what arrives in pushes is PAYLOAD. A push is the grant itself: put the token in it, and the stamp of the last
// request that the store received from the waiter. The store saw that request before it granted, so the grant is
// younger than the sending of the request. That time is Grant.Sent, [Notifier.Sent] of the stamp, whatever has delayed
// or repeated the message. (The clock of the waiter wrote the stamp and the same clock reads it; nobody else reads it.)
//
// Nothing may depend on a notification. It can be lost, late, or for a grant that has expired. So every wait runs its
// idempotent script again within a second. In a cluster every node receives each message, whichever node has the key. So
// a Notifier needs one subscription, which does not follow slots and masters. A node that has left the cluster receives none, and
// keeps the subscription while it runs: shut it down.
//
// A message for none of the waits goes to the function given to NewNotifier. An example: a holder was force-released.
type Notifier struct {
	rdb      redis.UniversalClient
	channels string
	process  string
	ttl      string                   // of grants, in ms: the end of each ID
	news     func(id, payload string) // what is for none of the waits; it must not block
	epoch    time.Time
	ids      atomic.Uint64

	opened sync.Once
	cancel context.CancelFunc // of the subscription; nil if there is none
	ended  chan struct{}      // closed when it has ended

	mu    sync.Mutex
	waits map[string]chan string // by ID
}

// NewNotifier returns a Notifier whose channel begins with prefix. It subscribes when it is first
// needed. IDs name ttl, the longest that a grant lasts without a renewal: a script that finds one that would last longer knows
// that the clock was set back. news gets what is for none of the waits, must not block, and may be nil.
func NewNotifier(rdb redis.UniversalClient, prefix string, ttl time.Duration, news func(id, payload string)) *Notifier {
	return &Notifier{
		rdb: rdb, channels: prefix + "push:", process: rand.Text(), ttl: strconv.FormatInt(ttl.Milliseconds(), 10),
		news: news, epoch: time.Now(), waits: map[string]chan string{},
	}
}

// NewID returns a name for one wait, which is also the owner of its grant.
func (n *Notifier) NewID() string {
	return n.process + "-" + strconv.FormatUint(n.ids.Add(1), 36) + "-" + n.ttl
}

// Stamp returns the time of a request as an argument for its script.
func (n *Notifier) Stamp(t time.Time) string { return strconv.FormatInt(int64(t.Sub(n.epoch)), 10) }

// Sent returns the time of a stamp that a push has brought back.
func (n *Notifier) Sent(stamp string) (time.Time, bool) {
	d, err := strconv.ParseInt(stamp, 10, 64)
	return n.epoch.Add(time.Duration(d)), err == nil
}

// Channels is what a script puts before the name of a Notifier to push to it.
func (n *Notifier) Channels() string { return n.channels }

// Join makes pushes for id arrive, until leave is called. Pushes that are unread by then, and later ones, go to news. It does
// not block; the first one of a Notifier starts to subscribe. An empty push says that one may have been lost, or that the
// subscription begins. The channel is never closed.
func (n *Notifier) Join(ctx context.Context, id string) (pushes <-chan string, leave func()) {
	n.Listen(ctx)
	c := make(chan string, 4)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waits[id] = c
	return c, func() {
		n.mu.Lock()
		delete(n.waits, id)
		n.mu.Unlock()
		for n.news != nil && len(c) > 0 { // nothing sends to it any more
			n.news(id, <-c)
		}
	}
}

// Listen makes pushes arrive. It does not block.
func (n *Notifier) Listen(ctx context.Context) {
	n.opened.Do(func() {
		subscribed, cancel := context.WithCancel(context.WithoutCancel(ctx))
		n.cancel, n.ended = cancel, make(chan struct{})
		go func() { // until Close, or the client is closed
			defer close(n.ended)
			n.receive(subscribed)
		}()
	})
}

func (n *Notifier) receive(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	Subscribe(ctx, func() *redis.PubSub { return n.rdb.Subscribe(ctx, n.channels+n.process) }, func(message any) {
		switch m := message.(type) {
		case *redis.Message:
			n.deliver(m.Payload)
		case *redis.Subscription: // earlier messages are lost
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, wait := range n.waits {
				push(wait, "")
			}
		case error:
			if errors.Is(m, redis.ErrClosed) {
				stop()
			}
		}
	})
}

// Close unsubscribes, and waits for the end of the subscription, or of ctx.
// Waits that continue have their fallback polls.
func (n *Notifier) Close(ctx context.Context) error {
	n.opened.Do(func() {}) // never again
	if n.cancel == nil {
		return nil
	}
	n.cancel()
	select {
	case <-n.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver passes on one message.
func (n *Notifier) deliver(message string) {
	id, payload, _ := strings.Cut(message, " ")
	n.mu.Lock()
	wait := n.waits[id]
	if wait != nil {
		push(wait, payload)
	}
	n.mu.Unlock()
	if wait == nil && n.news != nil {
		n.news(id, payload)
	}
}

// push does not block. A wait that does not keep up has its fallback poll.
func push(wait chan<- string, payload string) {
	select {
	case wait <- payload:
	default:
	}
}
