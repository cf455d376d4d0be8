package dlocktest_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/memsem"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// The functions below write histories by hand.

func op(client int, from, to int64, c dlocktest.Call, o dlocktest.Outcome) porcupine.Operation {
	c.Key = "k"
	return porcupine.Operation{ClientId: client, Call: from, Return: to, Input: c, Output: o}
}

func try(n int) dlocktest.Call { return dlocktest.Call{Op: dlocktest.OpTry, N: n} }

func release(owner string) dlocktest.Call {
	return dlocktest.Call{Op: dlocktest.OpRelease, Owner: owner}
}

func expire(owner string) dlocktest.Call { return dlocktest.Call{Op: dlocktest.OpExpire, Owner: owner} }

func granted(owner string, token uint64) dlocktest.Outcome {
	return dlocktest.Outcome{Result: dlocktest.Done, Fence: dlock.Fence{Token: token, Owner: owner}}
}

func ended(r dlocktest.Result) dlocktest.Outcome { return dlocktest.Outcome{Result: r} }

const open = math.MaxInt64

type handmade struct {
	name string
	want porcupine.CheckResult
	ops  []porcupine.Operation
}

// The models must reject bad histories, or a green check means nothing.
func TestLockModel(t *testing.T) {
	judge(t, dlocktest.LockModel(), []handmade{
		{"hand-over", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(0, 20, 30, release("a"), ended(dlocktest.Done)),
			op(1, 5, 40, try(1), granted("b", 2)),
		}},
		{"two holders", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(1, 20, 30, try(1), granted("b", 2)),
			op(0, 40, 50, release("a"), ended(dlocktest.Done)),
		}},
		{"two concurrent holders, the loss reported before the grant", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(9, 19, open, expire("a"), ended(dlocktest.Unknown)),
			op(1, 15, 30, try(1), granted("b", 2)),
		}},
		{"two losses in a row", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(9, 19, open, expire("a"), ended(dlocktest.Unknown)),
			op(1, 15, 30, try(1), granted("b", 2)),
			op(8, 40, open, expire("b"), ended(dlocktest.Unknown)),
			op(2, 35, 50, try(1), granted("c", 3)),
		}},
		{"the loss reported after the grant", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(1, 15, 30, try(1), granted("b", 2)),
			op(9, 31, open, expire("a"), ended(dlocktest.Unknown)),
		}},
		{"the fence goes back", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 7)),
			op(0, 20, 30, release("a"), ended(dlocktest.Done)),
			op(1, 40, 50, try(1), granted("b", 3)),
		}},
		{"the same token for another owner", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 7)),
			op(9, 11, open, expire("a"), ended(dlocktest.Unknown)),
			op(1, 40, 50, try(1), granted("b", 7)),
		}},
	})
}

func TestLockModelOfRefusalsAndReleases(t *testing.T) {
	judge(t, dlocktest.LockModel(), []handmade{
		{"a free lock is refused", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(0, 11, 12, release("a"), ended(dlocktest.Done)),
			op(1, 20, 30, try(1), ended(dlocktest.Refused)),
		}},
		{"a refusal, and an unknown attempt that explains it", porcupine.Ok, []porcupine.Operation{
			op(0, 0, open, try(1), ended(dlocktest.Unknown)),
			op(1, 20, 30, try(1), ended(dlocktest.Refused)),
			op(1, 40, 50, try(1), ended(dlocktest.Refused)),
			op(1, 60, 70, try(1), granted("b", 1)),
		}},
		{"an unknown attempt explains no second refusal", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, open, try(1), ended(dlocktest.Unknown)),
			op(1, 20, 30, try(1), ended(dlocktest.Refused)),
			op(1, 40, 50, try(1), granted("b", 1)),
			op(1, 51, 52, release("b"), ended(dlocktest.Done)),
			op(1, 60, 70, try(1), ended(dlocktest.Refused)),
		}},
		{"an unknown attempt explains no second holder", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, open, try(1), ended(dlocktest.Unknown)),
			op(1, 20, 30, try(1), granted("b", 1)),
			op(2, 40, 50, try(1), granted("c", 2)),
		}},
		{"an unknown release", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(0, 20, open, release("a"), ended(dlocktest.Unknown)),
			op(1, 30, 40, try(1), ended(dlocktest.Refused)),
			op(1, 50, 60, try(1), granted("b", 2)),
		}},
		{"a loss that is made up", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(0, 20, 30, release("a"), ended(dlocktest.Lost)),
		}},
		{"a late release that frees the lock of another", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(9, 11, open, expire("a"), ended(dlocktest.Unknown)),
			op(1, 20, 30, try(1), granted("b", 2)),
			op(0, 40, 50, release("a"), ended(dlocktest.Done)),
		}},
	})
}

func TestSemaphoreModel(t *testing.T) {
	queued := dlocktest.Outcome{Result: dlocktest.Refused, Queued: true}
	judge(t, dlocktest.SemaphoreModel(3), []handmade{
		{"full", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(2), granted("a", 1)),
			op(1, 20, 30, try(1), granted("b", 2)),
			op(2, 40, 50, try(1), ended(dlocktest.Refused)),
			op(0, 60, 70, release("a"), ended(dlocktest.Done)),
			op(2, 80, 90, try(2), granted("c", 3)),
		}},
		{"more than there are", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(2), granted("a", 1)),
			op(1, 20, 30, try(2), granted("b", 2)),
			op(0, 60, 70, release("a"), ended(dlocktest.Done)),
		}},
		{"more than there are, after an expiry", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(2), granted("a", 1)),
			op(9, 15, open, expire("a"), ended(dlocktest.Unknown)),
			op(1, 20, 30, try(2), granted("b", 2)),
		}},
		{"free permits are refused", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(1, 20, 30, try(2), ended(dlocktest.Refused)),
		}},
		{"free permits are refused while others wait", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(1), granted("a", 1)),
			op(1, 20, 30, try(2), queued),
		}},
		{"permits released twice", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(2), granted("a", 1)),
			op(0, 20, 30, release("a"), ended(dlocktest.Done)),
			op(0, 40, 50, release("a"), ended(dlocktest.Done)),
		}},
		{"after a resize", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(3), granted("a", 1)),
			op(1, 20, 30, dlocktest.Call{Op: dlocktest.OpResize, N: 4}, ended(dlocktest.Done)),
			op(2, 40, 50, try(1), granted("b", 2)),
			op(1, 60, 70, dlocktest.Call{Op: dlocktest.OpResize, N: 1}, ended(dlocktest.Done)),
			op(0, 80, 90, release("a"), ended(dlocktest.Done)),
			op(0, 91, 92, try(1), ended(dlocktest.Refused)),
		}},
		{"refused as too many, as a resize had made it", porcupine.Ok, []porcupine.Operation{
			op(1, 0, 10, dlocktest.Call{Op: dlocktest.OpResize, N: 1}, ended(dlocktest.Done)),
			op(0, 5, 30, try(2), ended(dlocktest.Invalid)),
		}},
		{"refused as too many, which it is not", porcupine.Illegal, []porcupine.Operation{
			op(1, 0, 10, dlocktest.Call{Op: dlocktest.OpResize, N: 2}, ended(dlocktest.Done)),
			op(0, 20, 30, try(2), ended(dlocktest.Invalid)),
		}},
		{"a resize down is ignored", porcupine.Illegal, []porcupine.Operation{
			op(1, 0, 10, dlocktest.Call{Op: dlocktest.OpResize, N: 1}, ended(dlocktest.Done)),
			op(0, 20, 30, try(2), granted("a", 1)),
		}},
	})
}

func judge(t *testing.T, model porcupine.Model, histories []handmade) {
	t.Helper()
	for _, c := range histories {
		t.Run(c.name, func(t *testing.T) {
			if got := porcupine.CheckOperationsTimeout(model, c.ops, time.Minute); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestMemlockHistory is without faults, so no loss and no unknown outcome may be in it.
func TestMemlockHistory(t *testing.T) {
	h := dlocktest.NewHistory()
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New(memlock.Config{TTL: 10 * time.Millisecond})
		load := dlocktest.Load{
			Keys: dlocktest.HistoryKeys(2), Rounds: testbedtest.Size(200, 2000), Hold: 30 * time.Millisecond,
			MaxWait: time.Hour, Seed: dlocktest.Seed(t),
		}
		load.Run(t.Context(), clients(6, func() *dlocktest.HistoryClient { return h.Locker(l) })...)
	})
	h.Check(t, dlocktest.LockModel())
	h.CheckLossBeforeNextGrant(t)
	h.CheckFences(t)
	if h.Disruptions() != 0 {
		t.Errorf("%d doubts without a fault", h.Disruptions())
	}
}

func TestMemlockSemaphoreHistory(t *testing.T) {
	const permits = 4
	h := dlocktest.NewHistory()
	synctest.Test(t, func(t *testing.T) {
		s := memsem.New(memsem.Config{Permits: permits, TTL: 10 * time.Millisecond})
		load := dlocktest.Load{
			Keys: dlocktest.HistoryKeys(2), Rounds: testbedtest.Size(200, 2000), Permits: permits, Hold: 30 * time.Millisecond,
			MaxWait: time.Hour, Seed: dlocktest.Seed(t),
		}
		load.Run(t.Context(), clients(8, func() *dlocktest.HistoryClient { return h.Semaphore(s) })...)
	})
	h.Check(t, dlocktest.SemaphoreModel(permits))
	if h.Disruptions() != 0 {
		t.Errorf("%d doubts without a fault", h.Disruptions())
	}
}

func clients(n int, client func() *dlocktest.HistoryClient) []*dlocktest.HistoryClient {
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = client()
	}
	return all
}
