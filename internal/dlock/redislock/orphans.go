package redislock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxOrphans bounds the memory that an outage can cost. The TTL frees the rest.
const maxOrphans = 4096

// orphan is an attempt whose outcome is unknown: owner may have key until then.
type orphan struct {
	key, owner string
	until      time.Time
	looked     bool // found nothing once
}

// orphans are given back by one goroutine. [Locker.abandon] starts it, it ends
// when there is nothing left to give back, and [Locker.Close] waits for it.
type orphans struct {
	mu    sync.Mutex
	queue []orphan
	idle  chan struct{} // closed when the goroutine has ended; nil if none runs
}

// abandon gives back in the background what id may have of key: the key, or a
// place in its queue.
func (l *Locker) abandon(ctx context.Context, key, id string) {
	s := &l.orphans
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxOrphans {
		return
	}
	s.queue = append(s.queue, orphan{key: key, owner: id, until: time.Now().Add(max(l.cfg.TTL, 2*l.dead()))})
	if s.idle == nil {
		s.idle = make(chan struct{})
		go l.giveBack(context.WithoutCancel(ctx))
	}
}

// giveBack ends soon after the last call of abandon: by then every orphan has
// been dealt with or has expired in Redis.
func (l *Locker) giveBack(ctx context.Context) {
	s := &l.orphans
	pause := time.NewTicker(max(l.cfg.Timeout/4, time.Millisecond))
	defer pause.Stop()
	for {
		s.mu.Lock()
		batch := slices.Clone(s.queue)
		if len(batch) == 0 {
			close(s.idle)
			s.idle = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		again := l.abandonAll(ctx, batch)
		s.mu.Lock()
		s.queue = append(again, s.queue[len(batch):]...) // abandon only appends
		left := len(s.queue)
		s.mu.Unlock()
		if left > 0 {
			<-pause.C
		}
	}
}

// abandonAll returns those that have to be looked at again: because Redis did
// not answer, or because it found nothing the first time. The lost request may
// still be on its way then, in the buffers of a connection given up.
func (l *Locker) abandonAll(ctx context.Context, batch []orphan) (again []orphan) {
	ctx, cancel := context.WithTimeout(ctx, 2*l.cfg.Timeout)
	defer cancel()
	calls := make([]*call, len(batch))
	for i, o := range batch {
		if time.Now().Before(o.until) {
			k := keysOf(l.cfg.Prefix, o.key)
			calls[i] = l.calls.start(ctx, abandonScript, k.all(), l.args(k, o.owner)...)
		}
	}
	for i, o := range batch {
		if calls[i] == nil {
			continue
		}
		n, _, err := calls[i].wait()
		if err != nil || n == int64(0) && !o.looked {
			o.looked = o.looked || err == nil
			again = append(again, o)
		}
	}
	return again
}

func (s *orphans) wait(ctx context.Context) error {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
