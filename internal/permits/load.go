package permits

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// leastWait and mostWait bound how long refused callers are asked to stay away.
	leastWait = time.Second
	mostWait  = 30 * time.Second
)

// load says how long refused callers should wait: until as many as were refused lately
// could have been admitted at the present rate.
type load struct {
	mu        sync.Mutex
	since     time.Time
	now, then count // of this second, and of the one before
}

type count struct{ admitted, refused int }

func (l *load) admitted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll()
	l.now.admitted++
}

// refused counts a refusal and returns how long its caller should wait. Jitter spreads the retries of callers that were
// refused together.
func (l *load) refused() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll()
	l.now.refused++
	wait := l.least()
	return wait + rand.N(wait)
}

// wait returns the least that a refused caller should wait.
func (l *load) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll()
	return l.least()
}

func (l *load) least() time.Duration {
	perAdmitted := float64(l.then.refused+l.now.refused) / float64(max(1, l.then.admitted+l.now.admitted))
	return min(mostWait, max(leastWait, time.Duration(perAdmitted*float64(time.Second))))
}

// roll begins another second.
func (l *load) roll() {
	switch age := time.Since(l.since); {
	case age > 2*time.Second:
		l.since, l.then, l.now = time.Now(), count{}, count{}
	case age > time.Second:
		l.since, l.then, l.now = time.Now(), l.now, count{}
	}
}
