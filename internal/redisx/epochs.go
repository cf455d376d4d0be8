package redisx

import (
	"sync"
	"time"
)

const (
	maxEpochs = 4096          // bounds the memory
	epochAge  = 6 * time.Hour // less than the store remembers an epoch that is not used
)

// Epochs remember when the state of each semaphore began, by the clock of the
// store. A store that answers with another beginning has lost its data since.
type Epochs struct {
	mu    sync.Mutex
	byKey map[string]epoch
}

type epoch struct {
	began string
	seen  time.Time
}

// Of returns the epoch of key, or nothing if this client has not seen one lately.
func (e *Epochs) Of(key string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.byKey[key]; ok && time.Since(known.seen) < epochAge {
		return known.began
	}
	return ""
}

// Set notes that key has been found with this beginning.
func (e *Epochs) Set(key, began string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKey == nil {
		e.byKey = map[string]epoch{}
	}
	if _, ok := e.byKey[key]; !ok && len(e.byKey) >= maxEpochs {
		for other := range e.byKey { // any other
			delete(e.byKey, other)
			break
		}
	}
	e.byKey[key] = epoch{began, time.Now()}
}
