package redislock

import (
	"sync"
	"time"
)

const (
	maxEpochs = 4096          // bounds the memory
	epochAge  = 6 * time.Hour // less than the store remembers an epoch that is not used
)

// epochs remember when the state of each semaphore began, by the clock of the
// store. A store that answers with another beginning has lost its data since.
type epochs struct {
	mu    sync.Mutex
	byKey map[string]epoch
}

type epoch struct {
	began string
	seen  time.Time
}

// of returns the epoch of key, or nothing if this client has not seen one lately.
func (e *epochs) of(key string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.byKey[key]; ok && time.Since(known.seen) < epochAge {
		return known.began
	}
	return ""
}

func (e *epochs) set(key, began string) {
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
