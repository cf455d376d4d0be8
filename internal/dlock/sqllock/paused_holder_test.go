package sqllock_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

const holderStore = "SHOP_TEST_HOLDER_SQL"

// TestHolderProcess is no test: it is what StartHolder runs.
func TestHolderProcess(t *testing.T) {
	address := os.Getenv(holderStore)
	if address == "" {
		return
	}
	s := mariaDB(address)
	if filepath.IsAbs(address) {
		s = sqlite(address)
	}
	dlocktest.ServeHolder(t, s.locker(t, sqllock.Config{TTL: ttl}))
}

// TestHistoryWithPausedHolders stops a process for longer than the TTL, wherever it is.
// It resumes and considers leases valid that others have taken meanwhile; it must find out.
func TestHistoryWithPausedHolders(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := mariaDB(testbedtest.Database(t))
		s.create(t)
		stoppedHolders(t, s)
	})
}

// TestHistoryWithPausedHoldersOfAFile stops a process that locks in SQLite. If it stops in the middle of a statement, it
// also keeps others from writing.
func TestHistoryWithPausedHoldersOfAFile(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := sqlite(filepath.Join(t.TempDir(), "locks.db"))
		s.create(t)
		stoppedHolders(t, s)
	})
}

func stoppedHolders(t testing.TB, s store) {
	t.Helper()
	dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
		far := dlocktest.StartHolder(t, "TestHolderProcess", 8*ttl, holderStore+"="+s.address)
		tr.PauseHolder(t, far, s.clients(t, tr, 2), testbedtest.Size(2, 20))
	})
}
