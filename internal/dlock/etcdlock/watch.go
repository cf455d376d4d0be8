package etcdlock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/backoff"
)

// notifier has the watches of one client, all on one stream. The first watch starts its two goroutines, which send
// and receive; close ends them and waits for them.
//
// It replaces the watches of the library, because a waiter has to know what its watch may have missed. It keeps the
// revision since which a member serves a watch, and notices a broken stream.
//
// A waiter watches the last key that was created before its own, so the end of a key wakes one waiter. A waiter is
// next if its own key exists and no earlier key does. Earlier keys can only disappear, so any state of etcd that
// shows this proves it, and any member may answer the poll from memory.
//
// If only one key was ahead, no poll is needed. Then one watch covers both keys and all names between them. A member
// sends the events of one watch in order, so the waiter's own key still existed if its end was not received first.
// The events of two watches may arrive in any order: a member that cannot send all events of a watch at once sends them
// later.
//
// A watch starts at the present revision, because etcd serves watches of past revisions only ten times a second, until they
// have caught up. (The library's Mutex waits for that.) A poll finds what happened before. A commit during the creation
// of the watch can be missed. So the waiter polls again 10, 30 and 70 ms later, in the memory of one member.
type notifier struct {
	client pb.WatchClient
	ctx    context.Context //nolint:containedctx // It is the lifetime of the goroutines, ended by close.
	stop   context.CancelFunc
	joined sync.WaitGroup

	mu      sync.Mutex
	watches map[int64]*watch
	last    int64 // id of the latest watch
	queue   []*pb.WatchRequest
	more    chan struct{} // buffered: there is something in queue
	started bool
	closed  bool
}

// watch waits for the end of one key, or of two keys of one queue. The mutex of the notifier protects the fields below
// onEvent.
type watch struct {
	key     string
	own     string // the second key, or empty
	onEvent func() // is called after each event; it must not block

	id      int64 // 0 before it has begun
	dropped bool

	from   int64 // revision from which to receive every event; 0: from now on
	since  int64 // nothing after this revision was missed; 0: not watching yet
	end    int64 // revision at which key ended; 0 before
	ownEnd int64 // likewise
}

func newNotifier(ctx context.Context, client pb.WatchClient) *notifier {
	h := &notifier{client: client, watches: map[int64]*watch{}, more: make(chan struct{}, 1)}
	h.ctx, h.stop = context.WithCancel(ctx)
	return h
}

// close ends all watches, and waits for the goroutines, or the end of ctx. Later watches receive nothing.
func (h *notifier) close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	return driver.Await(ctx, h.joined.Wait)
}

// add begins a watch: from a revision on, or from now on if that is 0. It does nothing if the watch has begun before,
// or has been dropped.
func (h *notifier) add(w *watch, from int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || w.id != 0 || w.dropped {
		return
	}
	h.last++
	w.id, w.from = h.last, from
	if !h.started {
		h.started = true
		h.joined.Go(h.run)
	}
	h.watches[w.id] = w
	h.send(create(w))
}

// drop ends a watch for good. Its owner receives nothing
// that is found after drop has returned.
func (h *notifier) drop(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.dropped = true
	if _, ok := h.watches[w.id]; !ok {
		return
	}
	delete(h.watches, w.id)
	h.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: w.id},
	}})
}

// state returns the revision since which w receives events, and the revisions at which its keys ended. Each is 0 if
// there is none.
func (h *notifier) state(w *watch) (since, end, own int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.since, w.end, w.ownEnd
}

// goes starts f, for which close waits. It does nothing once the notifier is closed.
func (h *notifier) goes(f func(context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.joined.Go(func() { f(h.ctx) })
	}
}

func create(w *watch) *pb.WatchRequest {
	r := &pb.WatchCreateRequest{
		WatchId: w.id, Key: []byte(w.key), StartRevision: w.from,
		Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT},
	}
	if w.own != "" {
		r.Key, r.RangeEnd = []byte(min(w.key, w.own)), []byte(max(w.key, w.own)+"\x00")
	}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}
}

// send is called under mu, and does not wait for the network.
func (h *notifier) send(r *pb.WatchRequest) {
	h.queue = append(h.queue, r)
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// run opens the stream again whenever it ends.
func (h *notifier) run() {
	for h.ctx.Err() == nil {
		h.serve()
		backoff.Sleep(h.ctx, 50*time.Millisecond+rand.N(100*time.Millisecond))
	}
}

// serve has one stream for as long as it lives. A member that has no leader ends it,
// so that the next one is with another member.
func (h *notifier) serve() {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(h.ctx))
	defer cancel()
	stream, err := h.client.Watch(ctx)
	if err != nil {
		return
	}
	h.resume()
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer cancel()
	receiving.Go(func() {
		defer cancel()
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			h.receive(r)
		}
	})
	for {
		h.mu.Lock()
		queue := h.queue
		h.queue = nil
		h.mu.Unlock()
		for _, r := range queue {
			if stream.Send(r) != nil {
				return
			}
		}
		select {
		case <-h.more:
		case <-ctx.Done():
			return
		}
	}
}

// resume asks a new stream for all watches. Those that began now start again, and have
// missed what was between.
func (h *notifier) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = nil
	for _, w := range h.watches {
		w.since = 0
		h.send(create(w))
	}
}

// receive handles one message of the stream.
func (h *notifier) receive(r *pb.WatchResponse) {
	h.mu.Lock()
	w := h.watches[r.WatchId]
	if w == nil {
		h.mu.Unlock()
		return
	}
	switch {
	case r.Canceled && r.CompactRevision > 0: // it was to begin too long ago
		w.since, w.from = 0, 0
		h.send(create(w))
	case r.Canceled: // refused; waiters poll by themselves
		w.since = 0
	case r.Created:
		w.since = r.GetHeader().GetRevision()
		if w.from > 0 {
			w.since = w.from - 1
		}
	}
	for _, event := range r.Events { // of ends only
		switch string(event.Kv.Key) {
		case w.key:
			w.end = event.Kv.ModRevision
		case w.own:
			w.ownEnd = event.Kv.ModRevision
		}
	}
	h.mu.Unlock()
	w.onEvent()
}
