package zookeeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/backoff"
)

// orphan is a node that nobody wants: at path, or in dir with a name that begins with id, if it exists.
type orphan struct{ path, dir, id string }

// orphans are deleted by one goroutine. add starts it, it ends when there is
// nothing left to delete or the session is closed, and Close waits for it.
type orphans struct {
	mu      sync.Mutex
	queue   []orphan
	running bool
}

// DeleteLater deletes a node in the background, and does not give up before it is
// known to be gone or the session is closed. It must not have children.
func (s *Session) DeleteLater(path string) { s.orphans.add(s, orphan{path: path}) }

func (o *orphans) add(s *Session, one orphan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, one)
	if o.running || !s.begin() { // the end of the session deletes it
		return
	}
	o.running = true
	go func() {
		defer s.running.Done()
		o.work(s)
	}()
}

func (o *orphans) work(s *Session) {
	const most = 64 // at a time
	for pause := 10 * time.Millisecond; ; {
		o.mu.Lock()
		batch := o.queue[:min(most, len(o.queue))]
		o.queue = o.queue[len(batch):]
		if len(batch) == 0 || s.life.Err() != nil {
			o.queue, o.running = nil, false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		failed := s.deleteAll(batch)
		if len(failed) == 0 {
			pause = 10 * time.Millisecond
			continue
		}
		o.mu.Lock()
		o.queue = append(o.queue, failed...)
		o.mu.Unlock()
		backoff.Sleep(s.life, pause/2+rand.N(pause))
		pause = min(2*pause, time.Second)
	}
}

// deleteAll returns those that have to be tried again.
func (s *Session) deleteAll(batch []orphan) (failed []orphan) {
	again := make([]bool, len(batch))
	var wg sync.WaitGroup
	for i, one := range batch {
		wg.Go(func() { again[i] = s.deleteOrphan(s.life, one) != nil })
	}
	wg.Wait()
	for i, one := range batch {
		if again[i] {
			failed = append(failed, one)
		}
	}
	return failed
}

// deleteOrphan searches for a node of unknown name after a commit. By then a creation by an earlier connection of the
// session has taken effect, or never will.
func (s *Session) deleteOrphan(ctx context.Context, one orphan) error {
	path := one.path
	if path == "" {
		if err := s.Confirm(ctx); err != nil {
			return err
		}
		names, _, err := s.Children(ctx, one.dir)
		if err != nil {
			return unless(err, zk.ErrNoNode)
		}
		for _, name := range names {
			if strings.HasPrefix(name, one.id+"-") {
				path = one.dir + "/" + name
			}
		}
		if path == "" {
			return nil
		}
	}
	return unless(s.Delete(ctx, path, -1), zk.ErrNoNode)
}

func unless(err, fine error) error {
	if errors.Is(err, fine) {
		return nil
	}
	return err
}
