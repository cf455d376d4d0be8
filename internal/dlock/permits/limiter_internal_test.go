package permits

import (
	"testing"
	"testing/synctest"
)

// A permit that is free when the wait ends is taken, although no answer of the store has come.
func TestTakeAtTheEndOfItsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, err := New(struct{ Store }{}, Config{Permits: 1}) // nothing calls the store
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			synctest.Wait() // until Take waits
			l.mu.Lock()
			defer l.mu.Unlock()
			l.capacity = 1
		}()
		if _, err := l.Take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
