package redisx

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Notifier receives what scripts push to this process. Each client object has its own: a Locker, a Semaphore, a
// read/write lock or a condition.
//
// How to use it:
//
//	n := redisx.NewNotifier(rdb, prefix, nil)   // prefix as "shop:lock:"; it subscribes when it is first needed
//	id := n.NewID()                             // PROCESS-NUMBER, unique: the name of one wait, and the owner of its grant
//	w := n.Join(ctx, slotKey, id)               // before the script runs: a push can be faster than the reply
//	defer w.Leave()
//	script.Run(..., n.Command(), n.Channels(slotKey), id, n.Stamp(time.Now()), ...)
//	for {
//		select {
//		case push := <-w.Pushes:            // "": something may have been missed, run the script again
//		case <-recheck.C:                   // at most 1 s: run the script again, with the same id and a new stamp
//		case <-ctx.Done():                  // abandon id
//		}
//	}
//
// A script wakes the waiter ID by
//
//	redis.call(COMMAND, CHANNELS .. string.match(ID, '^[^-]+'), ID .. ' ' .. PAYLOAD)
//
// and what arrives in w.Pushes is PAYLOAD. A push is the grant itself: put the token in it, and the stamp of the last
// request that the store received from the waiter. The store saw that request before it granted, so the grant is
// younger than the sending of the request. That time is Grant.Sent, [Notifier.Sent] of the stamp, whatever has delayed
// or repeated the message. (The clock of the waiter wrote the stamp and the same clock reads it; nobody else reads it.)
//
// Nothing may depend on a notification. It can be lost, late, or for a grant that has expired. So every wait runs its
// idempotent script again within a second.
//
// A message for a process and not for one of its waits goes to [Notifier.Home] by PUBLISH, and to the function given to
// NewNotifier. An example: a holder was force-released.
type Notifier struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	prefix  string
	process string
	news    func(id, payload string) // what is for none of the waits; it must not block
	epoch   time.Time
	ids     atomic.Uint64

	mu            sync.Mutex
	closed        bool
	waits         map[string]*Wait
	subscriptions map[string]*subscription // by node; "" is the one for home, and the only one without a cluster
	shards        map[string]*shard        // by channel, in a cluster
	ctx           context.Context          //nolint:containedctx // of the subscriptions, from the first that needed one
	cancel        context.CancelFunc
	joined        sync.WaitGroup // goroutines of the subscriptions
}

// Wait is one caller that waits for pushes.
type Wait struct {
	notifier *Notifier
	ID       string
	shard    *shard
	Pushes   chan string // never closed; the empty string says that a push may have been lost
}

// NewNotifier returns a Notifier whose channels begin with prefix. It subscribes when it is first
// needed. news gets what is for none of the waits, must not block, and may be nil.
func NewNotifier(rdb redis.UniversalClient, prefix string, news func(id, payload string)) *Notifier {
	n := &Notifier{
		rdb: rdb, prefix: prefix, process: rand.Text(), news: news, epoch: time.Now(),
		waits: map[string]*Wait{}, subscriptions: map[string]*subscription{}, shards: map[string]*shard{},
	}
	n.cluster, _ = rdb.(*redis.ClusterClient)
	return n
}

// NewID returns a name for one wait, which is also the owner of its grant.
func (n *Notifier) NewID() string { return n.process + "-" + strconv.FormatUint(n.ids.Add(1), 36) }

// Stamp returns the time of a request as an argument for its script.
func (n *Notifier) Stamp(t time.Time) string { return strconv.FormatInt(int64(t.Sub(n.epoch)), 10) }

// Sent returns the time of a stamp that a push has brought back.
func (n *Notifier) Sent(stamp string) (time.Time, bool) {
	d, err := strconv.ParseInt(stamp, 10, 64)
	return n.epoch.Add(time.Duration(d)), err == nil
}

// Cluster reports whether the client is one of a cluster.
func (n *Notifier) Cluster() bool { return n.cluster != nil }

// Command is what a script publishes with.
func (n *Notifier) Command() string {
	if n.cluster != nil {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Channels is what a script puts before the name of a process to push to its waits. The slotKey is any Redis key of the
// script. In a cluster the channel has its hash tag, and is on its node.
func (n *Notifier) Channels(slotKey string) string {
	if n.cluster != nil {
		return n.prefix + "{" + HashTag(slotKey) + "}:push:"
	}
	return n.Home()
}

// Home is what a script puts before the name of a process to push to the process
// itself. In a cluster such a push goes to every node.
func (n *Notifier) Home() string { return n.prefix + "push:" }

// Join makes pushes for id arrive. It does not block; the first one of a process starts to subscribe, and receives an
// empty push after that has succeeded.
func (n *Notifier) Join(ctx context.Context, slotKey, id string) *Wait {
	w := &Wait{notifier: n, ID: id, Pushes: make(chan string, 4)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waits[id] = w
	n.open(ctx)
	if n.cluster != nil {
		w.shard = n.shard(n.Channels(slotKey) + n.process)
		w.shard.waits[id] = w
	}
	return w
}

// Leave ends the wait. Pushes that come later go to news.
func (w *Wait) Leave() {
	w.notifier.mu.Lock()
	defer w.notifier.mu.Unlock()
	delete(w.notifier.waits, w.ID)
	if w.shard != nil {
		delete(w.shard.waits, w.ID)
		w.notifier.rest(w.shard)
	}
}

// Listen makes pushes for the process arrive. It does not block.
func (n *Notifier) Listen(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open(ctx)
}

// open starts the line for home. It is called under mu.
func (n *Notifier) open(ctx context.Context) {
	if n.closed || n.ctx != nil {
		return
	}
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l := &subscription{notifier: n}
	n.subscriptions[""] = l
	n.joined.Go(l.run)
}

// Close unsubscribes, and waits for the goroutines of the Notifier, or for the end of ctx.
// Waits that continue have their fallback polls.
func (n *Notifier) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	if n.cancel != nil {
		n.cancel()
	}
	n.mu.Unlock()
	gone := make(chan struct{})
	go func() { // ends with the goroutines of the Notifier, which have been notified
		defer close(gone)
		n.joined.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver passes on one message. A wait that does not keep up has its fallback poll.
func (n *Notifier) deliver(message string) {
	id, payload, _ := strings.Cut(message, " ")
	n.mu.Lock()
	w := n.waits[id]
	n.mu.Unlock()
	if w == nil {
		if n.news != nil {
			n.news(id, payload)
		}
		return
	}
	w.push(payload)
}

func (w *Wait) push(payload string) {
	select {
	case w.Pushes <- payload:
	default:
	}
}
