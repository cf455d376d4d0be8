package permits

import (
	"math/rand/v2"
	"time"
)

const (
	// leastWait and mostWait bound how long refused callers are asked to stay away.
	leastWait = time.Second
	mostWait  = 30 * time.Second
)

// load says how long refused callers should wait: until as many as were refused lately
// could have been admitted at the present rate. The mutex of the limiter guards it.
type load struct {
	since     time.Time
	now, then count // of this second, and of the one before
}

type count struct{ admitted, refused int }

// current returns the count of this second.
func (l *load) current() *count {
	switch age := time.Since(l.since); {
	case age > 2*time.Second:
		l.since, l.then, l.now = time.Now(), count{}, count{}
	case age > time.Second:
		l.since, l.then, l.now = time.Now(), l.now, count{}
	}
	return &l.now
}

// refused counts a refusal and returns how long its caller should wait. Jitter spreads the retries of callers that were
// refused together.
func (l *load) refused() time.Duration {
	l.current().refused++
	wait := l.wait()
	return wait + rand.N(wait)
}

// wait returns the least that a refused caller should wait.
func (l *load) wait() time.Duration {
	now := l.current()
	perAdmitted := float64(l.then.refused+now.refused) / float64(max(1, l.then.admitted+now.admitted))
	return min(mostWait, max(leastWait, time.Duration(perAdmitted*float64(time.Second))))
}
