package cluster

import (
	"context"
	"iter"
	"sync/atomic"
)

// Setting is one setting of an instance. Its methods are safe for concurrent use.
type Setting[T any] struct {
	key  Key[T]
	all  *Settings
	held atomic.Pointer[held[T]]
}

// held is a value in force, and what is known of the store besides.
type held[T any] struct {
	value   T
	version int64 // of value; 0 for the default
	serial  int   // counts the values
	stored  Entry // the latest; its value is not in force if it was refused
	refused error
}

// Define adds a setting to s, which begins with its default. It fails if the key is not
// complete, or if s has a setting of that name. It is called before [Settings.Load] and Run.
func Define[T any](s *Settings, key Key[T]) (*Setting[T], error) {
	if err := key.validate(); err != nil {
		return nil, err
	}
	one := &Setting[T]{key: key, all: s}
	one.held.Store(&held[T]{value: key.Default})
	if err := s.add(key.Name, one); err != nil {
		return nil, err
	}
	return one, nil
}

// Get returns the value in force and its version, 0 for the default. It reads memory.
func (s *Setting[T]) Get() (value T, version int64) {
	h := s.held.Load()
	return h.value, h.version
}

// Watch returns a sequence of the values and their versions, beginning with those in force. Several changes that come
// while nobody asks make one step. It reads memory, waits while it is ranged over, and ends when ctx does.
func (s *Setting[T]) Watch(ctx context.Context) iter.Seq2[T, int64] {
	return func(yield func(T, int64) bool) {
		for serial := -1; ctx.Err() == nil; {
			changed := s.all.next()
			h := s.held.Load()
			if h.serial != serial {
				serial = h.serial
				if !yield(h.value, h.version) {
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Set writes value, provided that the store has that version. See [Settings.Set].
func (s *Setting[T]) Set(ctx context.Context, value T, version int64) (int64, error) {
	return s.all.Set(ctx, s.key.Name, s.key.Format(value), version)
}

// check implements slot.
func (s *Setting[T]) check(text string) error {
	_, err := s.key.read(text)
	return err
}

// apply implements slot. Only one goroutine at a time calls it.
func (s *Setting[T]) apply(stored Entry) (changed bool, refused error) {
	now := *s.held.Load()
	if stored == now.stored {
		return false, nil
	}
	now.stored = stored
	value := s.key.Default
	if stored.Version != 0 {
		value, refused = s.key.read(stored.Text)
	}
	if now.refused = refused; refused == nil {
		now.value, now.version = value, stored.Version
		now.serial++
	}
	s.held.Store(&now)
	return refused == nil, refused
}

// state implements slot.
func (s *Setting[T]) state() State {
	h := s.held.Load()
	return State{
		Name: s.key.Name, Value: s.key.Format(h.value), Version: h.version,
		Stored: h.stored.Version, Refused: h.refused,
	}
}
