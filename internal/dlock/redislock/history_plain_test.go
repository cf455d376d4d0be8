package redislock_test

import (
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	histories(t, append(contenders(), readersAndWriters()), 3, false, func(t testing.TB, tr *trial) {
		tr.load.Rounds = testbedtest.Size(60, 600)
		clients := tr.clients(t, 7, testbedtest.Redis(t))
		var wg sync.WaitGroup
		wg.Go(func() { // One holds for long, so that renewals are part of it.
			long := tr.load
			long.Rounds, long.Hold = 3, 2*ttl
			long.Run(t.Context(), clients[0])
		})
		tr.load.Run(t.Context(), clients[1:]...)
		wg.Wait()
	})
}

// TestHistoryOfScriptFlush makes the server forget the scripts all the time.
func TestHistoryOfScriptFlush(t *testing.T) {
	t.Parallel()
	histories(t, everything(), 3, false, func(t testing.TB, tr *trial) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin := client(t, server.URL())
		tr.during(t, tr.clients(t, 5, server.URL()), func() {
			for end := time.Now().Add(time.Duration(testbedtest.Size(2, 20)) * time.Second); time.Now().Before(end); {
				if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
					t.Error(err)
				}
				sleep(t, tr.between(time.Millisecond, 10*time.Millisecond))
			}
		})
	})
}
