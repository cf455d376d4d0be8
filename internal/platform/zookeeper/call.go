package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// reading is what requests return that only read: data, or names of children.
type reading[T any] struct {
	value T
	stat  *zk.Stat
}

// outcome is how a request ended.
type outcome[T any] struct {
	value T
	err   error
}

// call sends a request, for at most the time in which a silent connection is given up. zk ignores contexts, and may
// keep a request until it is connected again. So call leaves the request behind when ctx ends. Its later result is
// passed to late, if that is not nil.
func call[T any](ctx context.Context, s *Session, what string, f func(*zk.Conn) (T, error), late func(T, error)) (T, error) {
	var none T
	limit := time.NewTimer(s.maxWait())
	defer limit.Stop()
	c, err := s.await(ctx, limit.C)
	if err == nil && !s.begin() {
		err = ErrClosed
	}
	if err != nil {
		return none, fmt.Errorf("zookeeper: %s: %w", what, err)
	}
	var settled atomic.Bool
	done := make(chan outcome[T], 1)
	go func() {
		defer s.running.Done()
		value, err := f(c.conn)
		err = explain(err)
		if settled.CompareAndSwap(false, true) {
			done <- outcome[T]{value, err}
		} else if late != nil {
			late(value, err)
		}
	}()
	var why error
	select {
	case o := <-done:
		return o.value, named(what, o.err)
	case <-ctx.Done():
		why = ctx.Err() // and not its cause, which may look like an answer
	case <-limit.C:
		why = errSilent
	}
	if !settled.CompareAndSwap(false, true) {
		o := <-done
		return o.value, named(what, o.err)
	}
	return none, fmt.Errorf("zookeeper: %s: %w: %w", what, ErrUncertain, why)
}

var errSilent = errors.New("no answer")

func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zookeeper: %s: %w", what, err)
}

// maxWait bounds a request. zk gives up a connection that has been silent for as long.
func (s *Session) maxWait() time.Duration { return s.Timeout() * 2 / 3 }

// confirming is call for a request that a majority has to accept: it proves that the
// session lived when it was sent.
func confirming[T any](ctx context.Context, s *Session, what string, f func(*zk.Conn) (T, error), late func(T, error)) (T, error) {
	return call(ctx, s, what, func(conn *zk.Conn) (T, error) {
		sent, epoch := time.Now(), s.Epoch()
		value, err := f(conn)
		if err == nil {
			s.confirm(sent, epoch)
		}
		return value, err
	}, late)
}

func (s *Session) confirm(sent time.Time, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch == epoch && s.state != Expired && sent.After(s.confirmed) {
		s.confirmed = sent
	}
}
