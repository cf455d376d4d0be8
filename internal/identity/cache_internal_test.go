package identity

import (
	"context"
	"fmt"
	"testing"
)

// countingStore has no key and counts the lookups.
type countingStore struct {
	Store
	lookUps int
}

func (s *countingStore) Key(context.Context, string) (Record, error) {
	s.lookUps++
	return Record{}, ErrNotFound
}

// A caller that found nothing cached, and asks after the lookup of another has ended, gets its result.
func TestLateCallerSharesTheLookup(t *testing.T) {
	store := &countingStore{}
	s, err := New(store, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.lookUp(t.Context(), "prefix"); err != nil {
			t.Fatal(err)
		}
	}
	if store.lookUps != 1 {
		t.Errorf("%d lookups, want 1", store.lookUps)
	}
}

// Neither keys nor guesses fill more than their places, and neither takes those of the other.
func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(100)
	for i := range 2000 {
		m.put(fmt.Sprint("key", i%150), entry{exists: true}, 0)
		m.put(fmt.Sprint("guess", i), entry{}, 0)
		if len(m.keys) > 100 || len(m.none) > 100 {
			t.Fatalf("%d keys and %d guesses, want at most 100 each", len(m.keys), len(m.none))
		}
	}
	if len(m.keys) != 100 || len(m.none) != 100 {
		t.Errorf("%d keys and %d guesses, want 100 each", len(m.keys), len(m.none))
	}
	for prefix := range m.keys {
		m.put(prefix, entry{}, 0)
		if m.exists(prefix) || len(m.keys) != 99 {
			t.Errorf("%s is still a key", prefix)
		}
		m.put(prefix, entry{exists: true}, 0)
		if _, both := m.none[prefix]; both || !m.exists(prefix) || len(m.keys) != 100 {
			t.Errorf("%s is no key", prefix)
		}
		break
	}
}
