package dlocktest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TrialConfig says what a [Trial] is about.
type TrialConfig struct {
	TTL    time.Duration // of the clients
	Keys   int           // that they contend for
	Faulty bool          // whether something is harmed
	Limit  time.Duration // how long the load may run at most; 0 means a minute

	// Model is what the history is held against. Nil means LockModel, and that no
	// holder is notified of its loss after the next grant.
	Model *porcupine.Model

	SplitVotes bool // see [History]
	Unnoticed  bool // the faults may go unnoticed, so that there need not be losses or unknown outcomes
}

// Trial records the history of a lock: clients take and release keys while a fault harms them, the network or the
// store.
type Trial struct {
	*History

	Load   Load
	Random *rand.Rand // for the goroutine of the test
	Least  int        // grants below which the history proves nothing; 50 unless f of RunTrial changes it

	cfg TrialConfig
}

// RunTrial runs f, and fails the test unless the history is in order afterwards. On a busy machine, requests can time
// out without a fault, and a fault may hit no request. Then the trial starts again, twice at most.
func RunTrial(t testing.TB, cfg TrialConfig, f func(t testing.TB, tr *Trial)) {
	t.Helper()
	var tr *Trial
	for range 3 {
		tr = newTrial(t, cfg)
		f(t, tr)
		if (tr.Disruptions() > 0) == cfg.Faulty || cfg.Unnoticed {
			break
		}
		t.Logf("%d losses and unknown outcomes", tr.Disruptions())
	}
	tr.CheckFences(t)
	if n := tr.Disruptions(); n > 0 && !cfg.Faulty || n == 0 && cfg.Faulty && !cfg.Unnoticed {
		t.Errorf("%d losses and unknown outcomes", n)
	}
	if cfg.Model != nil {
		tr.Check(t, *cfg.Model)
	} else {
		tr.Check(t, LockModel())
		tr.CheckLossBeforeNextGrant(t)
	}
	if n := tr.Grants(); n < tr.Least {
		t.Errorf("only %d grants: that proves nothing", n)
	}
}

func newTrial(t testing.TB, cfg TrialConfig) *Trial {
	t.Helper()
	tr := &Trial{History: NewHistory(), Least: 50, cfg: cfg}
	if cfg.Faulty {
		tr.Faulty, tr.TTL = true, cfg.TTL
	}
	tr.SplitVotes = cfg.SplitVotes
	seed := Seed(t)
	tr.Random = rand.New(rand.NewPCG(seed, seed))
	tr.Load = Load{Keys: HistoryKeys(cfg.Keys), Rounds: 1 << 30, MaxWait: 10 * cfg.TTL, Seed: seed}
	return tr
}

// During runs the load while harm does its work, and for as long as there are fewer
// than Least grants. Afterwards no client may wait for much longer than it takes that
// what nobody holds expires.
func (tr *Trial) During(t testing.TB, clients []*HistoryClient, harm func()) {
	t.Helper()
	limit := tr.cfg.Limit
	if limit == 0 {
		limit = time.Minute
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { tr.Load.Run(ctx, clients...) })
	harm()
	for end := time.Now().Add(30 * time.Second); tr.Grants() < tr.Least && time.Now().Before(end); { // a busy machine takes longer
		pause(ctx, tr.cfg.TTL/100)
	}
	stop()
	stopped := time.Now()
	wg.Wait()
	if d, most := time.Since(stopped), 3*tr.cfg.TTL+4*time.Second; d > most {
		t.Errorf("a client waited for another %v, with nobody left in its way", d)
	}
}

// Between returns a random duration. It is for the goroutine of the test.
func (tr *Trial) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(tr.Random.Int64N(int64(high-low)))
}

// Pace lets d pass between two steps of harm. It decides nothing.
func Pace(t testing.TB, d time.Duration) {
	t.Helper()
	pause(t.Context(), d)
}
