package redislock_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"example.com/shop/internal/dlock"
)

// TestHolderProcess is no test: it is what startHolder runs.
func TestHolderProcess(t *testing.T) {
	url := os.Getenv(holderServer)
	if url == "" {
		return
	}
	h := &holder{out: json.NewEncoder(os.NewFile(3, "reports")), leases: map[string]*dlock.Lease{}}
	for _, c := range contenders() {
		if c.name == os.Getenv(holderContender) {
			h.s = c.new(t, client(t, url))
		}
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if in.Decode(&o) != nil {
			os.Exit(0)
		}
		go h.obey(t.Context(), o)
	}
}

// holder is the inside of the process.
type holder struct {
	s dlock.Semaphore

	mu     sync.Mutex
	out    *json.Encoder
	leases map[string]*dlock.Lease
}

func (h *holder) obey(ctx context.Context, o order) {
	if o.Owner != "" {
		h.mu.Lock()
		lease := h.leases[o.Owner]
		delete(h.leases, o.Owner)
		h.mu.Unlock()
		h.say(answerTo(o, lease.Release(ctx)))
		return
	}
	take := h.s.TryAcquire
	if o.Patience > 0 {
		take = h.s.Acquire
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Patience)
		defer cancel()
	}
	lease, err := take(ctx, o.Key, o.N)
	got := answerTo(o, err)
	if err == nil {
		got.Fence = lease.Fence()
		h.mu.Lock()
		h.leases[got.Fence.Owner] = lease
		h.mu.Unlock()
	}
	h.say(got)
	if err != nil {
		return
	}
	lease.OnEnd(func(error) {
		if lost, ok := errors.AsType[*dlock.LostError](lease.Err()); ok {
			h.say(report{Lost: true, Fence: lost.Fence, Reason: lost.Reason})
		}
	})
}

func answerTo(o order, err error) report {
	got := report{ID: o.ID, Held: errors.Is(err, dlock.ErrHeld)}
	if err != nil {
		got.Error = err.Error()
	}
	if lost, ok := errors.AsType[*dlock.LostError](err); ok {
		got.Reason = lost.Reason
	}
	return got
}

func (h *holder) say(r report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.out.Encode(r)
}
