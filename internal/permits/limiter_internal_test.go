package permits

import (
	"testing"
	"testing/synctest"

	"example.com/shop/internal/redisclient"
)

// A permit that is free when the wait ends is taken, although no answer of the store has come.
func TestTakeAtTheEndOfItsWait(t *testing.T) {
	t.Parallel()
	rdb, err := redisclient.New("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	synctest.Test(t, func(t *testing.T) {
		l, err := New(rdb, Config{Permits: 1}) // nothing calls the store
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			synctest.Wait() // until Take waits
			l.gate.resize(1)
		}()
		if _, err := l.Take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
