package redislock_test

import (
	"os"
	"testing"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The test binary is also the process that is paused: it takes and releases what
// its parent asks for, and reports what it loses.
const (
	holderServer    = "SHOP_TEST_HOLDER_REDIS"
	holderContender = "SHOP_TEST_HOLDER_CONTENDER"
)

// TestHistoryWithPausedHolders stops a process for longer than the TTL, wherever it
// is. It resumes and considers leases valid that others have taken meanwhile; it must find out.
func TestHistoryWithPausedHolders(t *testing.T) {
	t.Parallel()
	histories(t, contenders(), 3, true, func(t testing.TB, tr *trial) {
		url := testbedtest.Redis(t)
		tr.load.Hold, tr.least = ttl/2, 10
		far := dlocktest.StartHolder(t, "TestHolderProcess", 8*ttl, holderServer+"="+url, holderContender+"="+tr.name)
		paused := []*dlocktest.HistoryClient{tr.Semaphore(far.Semaphore()), tr.Semaphore(far.Semaphore()), tr.Semaphore(far.Semaphore())}
		tr.during(t, append(tr.clients(t, 2, url), paused...), func() {
			for range testbedtest.Size(2, 20) {
				sleep(t, tr.between(0, ttl/2))
				testbedtest.Eventually(t, "a holder to stop", far.Holds)
				tr.Pause(func() {
					if err := testbed.Suspend(far.Process); err != nil {
						t.Error(err)
					}
					sleep(t, ttl+tr.between(0, ttl/2))
					if err := testbed.Continue(far.Process); err != nil {
						t.Error(err)
					}
				}, paused...)
			}
		})
	})
}

// TestHolderProcess is no test: it is what StartHolder runs.
func TestHolderProcess(t *testing.T) {
	url := os.Getenv(holderServer)
	if url == "" {
		return
	}
	for _, c := range contenders() {
		if c.name == os.Getenv(holderContender) {
			dlocktest.ServeSemaphore(t, c.new(t, redistest.Client(t, url)))
		}
	}
}
