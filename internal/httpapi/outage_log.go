package httpapi

import (
	"sync"
	"time"
)

// logEvery is how often a kind of problem is logged that many requests meet when a store is away.
const logEvery = 10 * time.Second

// repeats keeps an outage from filling the log with a line per request.
type repeats struct {
	mu sync.Mutex
	by map[ProblemType]*repeat
}

type repeat struct {
	logged time.Time
	since  int // that were not logged
}

// allow reports whether a problem of the type is to be logged now, and how many were not since the last one that was.
func (r *repeats) allow(t ProblemType) (since int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = make(map[ProblemType]*repeat)
	}
	one := r.by[t]
	if one == nil {
		one = new(repeat)
		r.by[t] = one
	}
	if now := time.Now(); now.Sub(one.logged) >= logEvery {
		since, one.logged, one.since = one.since, now, 0
		return since, true
	}
	one.since++
	return 0, false
}
