package dlocktest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"example.com/shop/internal/dlock"
)

// ServeHolder is the inside of the process of [StartHolder]. It does not return. It is called only if an environment
// variable asks for it.
func ServeHolder(t testing.TB, l dlock.Locker) {
	t.Helper()
	ServeSemaphore(t, single{l})
}

// ServeSemaphore is ServeHolder for [Holder.Semaphore].
func ServeSemaphore(t testing.TB, s dlock.Semaphore) {
	t.Helper()
	serving := &served{s: s, out: json.NewEncoder(os.NewFile(3, "reports")), leases: map[string]*dlock.Lease{}}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if in.Decode(&o) != nil {
			os.Exit(0)
		}
		go serving.obey(t.Context(), o)
	}
}

type served struct {
	s dlock.Semaphore

	mu     sync.Mutex
	out    *json.Encoder
	leases map[string]*dlock.Lease
}

func (s *served) obey(ctx context.Context, o order) {
	if o.Owner != "" {
		s.mu.Lock()
		lease := s.leases[o.Owner]
		delete(s.leases, o.Owner)
		s.mu.Unlock()
		s.say(answerTo(o, lease.Release(ctx)))
		return
	}
	take := s.s.TryAcquire
	if o.MaxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.MaxWait)
		defer cancel()
		take = s.s.Acquire
	}
	lease, err := take(ctx, o.Key, o.N)
	got := answerTo(o, err)
	if err == nil {
		got.Fence = lease.Fence()
		s.mu.Lock()
		s.leases[got.Fence.Owner] = lease
		s.mu.Unlock()
	}
	s.say(got)
	if err != nil {
		return
	}
	lease.OnEnd(func(error) {
		if lost, ok := errors.AsType[*dlock.LostError](lease.Err()); ok {
			s.say(report{Lost: true, Fence: lost.Fence, Reason: lost.Reason})
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

func (s *served) say(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(r) // a parent that has gone reads nothing
}
