package httpapi

import (
	"sync"
	"time"
)

// logEvery is the least time between two log lines for a problem type that many requests get during an outage.
const logEvery = 10 * time.Second

// outageLog limits the log lines of an outage, which would otherwise be one per request.
type outageLog struct {
	mu sync.Mutex
	by map[ProblemType]*suppressed
}

type suppressed struct {
	logged time.Time // the latest line
	since  int       // problems without a line since then
}

// allow reports whether to log a problem of the type now, and how many were suppressed since the latest line.
func (r *outageLog) allow(t ProblemType) (since int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = make(map[ProblemType]*suppressed)
	}
	one := r.by[t]
	if one == nil {
		one = new(suppressed)
		r.by[t] = one
	}
	if now := time.Now(); now.Sub(one.logged) >= logEvery {
		since, one.logged, one.since = one.since, now, 0
		return since, true
	}
	one.since++
	return 0, false
}
