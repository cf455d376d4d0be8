package redislock

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

// hub receives what scripts push to this process, for one client object: a
// Locker, a Semaphore, a read/write lock or a condition has a hub of its own.
//
// How to use it:
//
//	h := newHub(rdb, prefix)                   // prefix as "shop:lock:"; it subscribes when it is first needed
//	id := h.newID()                            // PROCESS-NUMBER, unique: the name of one wait, and the owner of its grant
//	w := h.join(ctx, slotKey, id)                   // before the script runs: a push can be faster than the reply
//	defer w.leave()
//	script.Run(..., h.command(), h.channels(slotKey), id, h.stampOf(time.Now()), ...)
//	for {
//		select {
//		case push := <-w.pushes:            // "": something may have been missed, run the script again
//		case <-recheck.C:                   // at most 1 s: run the script again, with the same id and a new stamp
//		case <-ctx.Done():                  // abandon id
//		}
//	}
//
// A script wakes the waiter ID by
//
//	redis.call(COMMAND, CHANNELS .. string.match(ID, '^[^-]+'), ID .. ' ' .. PAYLOAD)
//
// and what arrives in w.pushes is PAYLOAD. A push is the grant itself: put the
// token in it, and the stamp of the request by which the store last heard of the
// waiter. The store saw that request before it granted, so the grant is younger
// than the moment at which it was sent, [hub.sent] of the stamp: that is
// Grant.Sent, whatever has delayed or repeated the message since. (The clock of
// the waiter wrote the stamp and the same clock reads it; nobody else looks.)
//
// Nothing may depend on a push. It can be lost, late, or for a grant that has
// lapsed: every wait runs its idempotent script again within a second.
//
// What is pushed to a process and not to one of its waits, as the news that a
// holder was forced out, goes to [hub.home] by PUBLISH, and to the function given
// to newHub.
type hub struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	prefix  string
	process string
	news    func(id, payload string) // what is for none of the waits; it must not block
	epoch   time.Time
	ids     atomic.Uint64

	mu     sync.Mutex
	closed bool
	waits  map[string]*wait
	lines  map[string]*line  // by node; "" is the one for home, and the only one without a cluster
	shards map[string]*shard // by channel, in a cluster
	ctx    context.Context   //nolint:containedctx // Of the lines, from the first that needed one.
	cancel context.CancelFunc
	joined sync.WaitGroup // goroutines of the lines
}

// wait is one caller that waits for pushes.
type wait struct {
	hub    *hub
	id     string
	shard  *shard
	pushes chan string // never closed; the empty string says that a push may have been lost
}

func newHub(rdb redis.UniversalClient, prefix string, news func(id, payload string)) *hub {
	h := &hub{
		rdb: rdb, prefix: prefix, process: rand.Text(), news: news, epoch: time.Now(),
		waits: map[string]*wait{}, lines: map[string]*line{}, shards: map[string]*shard{},
	}
	h.cluster, _ = rdb.(*redis.ClusterClient)
	return h
}

// newID returns a name for one wait, which is also the owner of its grant.
func (h *hub) newID() string { return h.process + "-" + strconv.FormatUint(h.ids.Add(1), 36) }

// stampOf returns the time of a request as an argument for its script.
func (h *hub) stampOf(t time.Time) string { return strconv.FormatInt(int64(t.Sub(h.epoch)), 10) }

// sent returns the time of a stamp that a push has brought back.
func (h *hub) sent(stamp string) (time.Time, bool) {
	d, err := strconv.ParseInt(stamp, 10, 64)
	return h.epoch.Add(time.Duration(d)), err == nil
}

// command is what a script publishes with.
func (h *hub) command() string {
	if h.cluster != nil {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// channels is what a script puts before the name of a process to push to its
// waits. slotKey is any Redis key of the script: in a cluster the channel carries
// its hash tag, and lives on its node.
func (h *hub) channels(slotKey string) string {
	if h.cluster != nil {
		return h.prefix + "{" + hashTag(slotKey) + "}:push:"
	}
	return h.home()
}

// home is what a script puts before the name of a process to push to the process
// itself. In a cluster such a push goes to every node.
func (h *hub) home() string { return h.prefix + "push:" }

// hashTag is the part of key that decides about its slot.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// join makes pushes for id arrive. It does not block; the first one of a process
// starts to subscribe, and is told by an empty push when that has succeeded.
func (h *hub) join(ctx context.Context, slotKey, id string) *wait {
	w := &wait{hub: h, id: id, pushes: make(chan string, 4)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits[id] = w
	h.open(ctx)
	if h.cluster != nil {
		w.shard = h.shard(h.channels(slotKey) + h.process)
		w.shard.waits[id] = w
	}
	return w
}

// leave ends the wait. Pushes that come later go to news.
func (w *wait) leave() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.hub.waits, w.id)
	if w.shard != nil {
		delete(w.shard.waits, w.id)
		w.hub.rest(w.shard)
	}
}

// listen makes pushes for the process arrive. It does not block.
func (h *hub) listen(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open(ctx)
}

// open starts the line for home. It is called under mu.
func (h *hub) open(ctx context.Context) {
	if h.closed || h.ctx != nil {
		return
	}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l := &line{hub: h}
	h.lines[""] = l
	h.joined.Go(l.run)
}

// close unsubscribes, and waits for the goroutines of the hub, or for the end of ctx.
// Waits that continue have their fallback polls.
func (h *hub) close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	if h.cancel != nil {
		h.cancel()
	}
	h.mu.Unlock()
	gone := make(chan struct{})
	go func() { // ends with the goroutines of the hub, which have been told
		defer close(gone)
		h.joined.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return dlock.Ended(ctx)
	}
}

// deliver passes on one message. A wait that does not keep up has its re-check.
func (h *hub) deliver(message string) {
	id, payload, _ := strings.Cut(message, " ")
	h.mu.Lock()
	w := h.waits[id]
	h.mu.Unlock()
	if w == nil {
		if h.news != nil {
			h.news(id, payload)
		}
		return
	}
	w.push(payload)
}

func (w *wait) push(payload string) {
	select {
	case w.pushes <- payload:
	default:
	}
}
