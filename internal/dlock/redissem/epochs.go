package redissem

import (
	"sync"
	"time"
)

const (
	maxEpochs = 4096          // are remembered for certain, and at most twice as many
	epochAge  = 6 * time.Hour // less than the store remembers an epoch that is not used
)

// epochs remember when the state of each semaphore began, by the clock of the
// store. A store that answers with another beginning has lost its data since.
type epochs struct {
	mu            sync.Mutex
	latest, older map[string]epoch
}

type epoch struct {
	began string
	seen  time.Time
}

// of returns the epoch of key, or nothing if this client has not seen one lately.
func (e *epochs) of(key string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.latest[key]
	if !ok {
		known, ok = e.older[key]
	}
	if ok && time.Since(known.seen) < epochAge {
		return known.began
	}
	return ""
}

// set notes that key has been found with this beginning.
func (e *epochs) set(key, began string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.latest[key]; e.latest == nil || !ok && len(e.latest) >= maxEpochs {
		e.latest, e.older = map[string]epoch{}, e.latest
	}
	e.latest[key] = epoch{began, time.Now()}
}
