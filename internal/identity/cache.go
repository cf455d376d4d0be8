package identity

import (
	"sync"
	"time"
)

// entry is what is remembered of a prefix.
type entry struct {
	read    time.Time // when the database was queried
	exists  bool      // it is the prefix of a key, and the rest is that key's
	hash    [32]byte
	state   State
	expires bool
	ends    time.Time // if it expires
	caller  Caller
}

// memory caches the results of lookups. Keys and unknown prefixes have separate
// caches, because any client can send any number of unknown prefixes. When one kind is full,
// any entry of it makes room. Old entries about keys are of use, too: the key exists.
type memory struct {
	most int // entries of each kind

	mu     sync.RWMutex
	keys   map[string]entry
	none   map[string]entry
	doubts uint64 // how often something was forgotten
}

func newMemory(most int) *memory {
	return &memory{most: most, keys: make(map[string]entry), none: make(map[string]entry)}
}

// get returns what is remembered of prefix, however old it is.
func (m *memory) get(prefix string) (entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if e, ok := m.keys[prefix]; ok {
		return e, true
	}
	e, ok := m.none[prefix]
	return e, ok
}

// invalidate makes the result for prefix stale, or of every prefix if prefix is empty, including lookups that are in
// flight. The previous result remains known, so the prefix of an existing key needs no place in the queue.
func (m *memory) invalidate(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubts++
	for _, each := range []map[string]entry{m.keys, m.none} {
		if prefix == "" {
			for p, e := range each {
				e.read = time.Time{}
				each[p] = e
			}
		} else if e, ok := each[prefix]; ok {
			e.read = time.Time{}
			each[prefix] = e
		}
	}
}

// round is how often something was forgotten.
func (m *memory) round() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.doubts
}

// exists reports whether prefix belonged to a key at its last lookup.
func (m *memory) exists(prefix string) bool {
	e, ok := m.get(prefix)
	return ok && e.exists
}

// put caches the result of a lookup that started in a round. The result is stale if the next round has begun.
func (m *memory) put(prefix string, e entry, round uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if round != m.doubts {
		e.read = time.Time{}
	}
	into, from := m.none, m.keys
	if e.exists {
		into, from = m.keys, m.none
	}
	delete(from, prefix)
	if _, ok := into[prefix]; !ok && len(into) >= m.most {
		for other := range into {
			delete(into, other)
			break
		}
	}
	into[prefix] = e
}
