package etcdlock_test

import (
	"os"
	"testing"
	"time"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// holderServer names the variable with the server's address for the process of a paused holder.
const holderServer = "SHOP_TEST_HOLDER_ETCD"

// TestHolderProcess is no test: it is what the process of TestHistoryWithPausedHolders runs.
func TestHolderProcess(t *testing.T) {
	if addr := os.Getenv(holderServer); addr != "" {
		dlocktest.ServeHolder(t, locker(t, client(t, addr)))
	}
}

// TestHistoryWithPausedHolders stops a process for longer than the TTL, wherever it
// is. It resumes and considers leases valid that others have taken meanwhile; it must find out.
func TestHistoryWithPausedHolders(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		cfg := dlocktest.TrialConfig{TTL: ttl, Keys: 3, Faulty: true, Limit: 5 * time.Minute}
		dlocktest.RunTrial(t, cfg, func(t testing.TB, own *dlocktest.Trial) {
			tr, addr := trial{own}, testbedtest.Etcd(t)
			far := dlocktest.StartHolder(t, "TestHolderProcess", 8*ttl, holderServer+"="+addr)
			tr.PauseHolder(t, far, tr.clients(t, 2, addr), testbedtest.Size(1, 20))
		})
	})
}
