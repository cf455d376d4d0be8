package cluster

import (
	"fmt"
	"sync"
)

// maxStrays bounds the memory that strays cost. When it is full they are reported again.
const maxStrays = 1024

// Strays reports entries that cannot be read, each once. It is for backends, and safe for concurrent use. The zero
// value is ready for use.
type Strays struct {
	mu       sync.Mutex
	reported map[string]bool
}

// Report calls onError with the reason why an entry is ignored. where precedes the entry in the text.
func (s *Strays) Report(onError func(error), where, entry string, err error) {
	s.mu.Lock()
	known := s.reported[entry]
	if s.reported == nil || !known && len(s.reported) >= maxStrays {
		s.reported = make(map[string]bool)
	}
	s.reported[entry] = true
	s.mu.Unlock()
	if !known {
		onError(fmt.Errorf("%s %.120q is ignored: %w", where, entry, err))
	}
}
