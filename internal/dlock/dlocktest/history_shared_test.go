package dlocktest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/memsem"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/semlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestRWModel(t *testing.T) {
	const writer, reader = dlocktest.RWPermits, 1
	judge(t, dlocktest.RWModel(), []handmade{
		{"readers have fences in any order, and a later writer a greater one", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(writer), granted("a", 1)),
			op(0, 20, 30, release("a"), ended(dlocktest.Done)),
			op(1, 40, 50, try(reader), granted("r1", 3)),
			op(2, 60, 70, try(reader), granted("r2", 2)),
			op(3, 72, 73, try(writer), ended(dlocktest.Refused)),
			op(1, 75, 80, release("r1"), ended(dlocktest.Done)),
			op(2, 75, 80, release("r2"), ended(dlocktest.Done)),
			op(3, 85, 90, try(writer), granted("b", 4)),
		}},
		{"a reader with the fence of the writer before", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(writer), granted("a", 1)),
			op(0, 20, 30, release("a"), ended(dlocktest.Done)),
			op(1, 40, 50, try(reader), granted("r1", 1)),
		}},
		{"a writer with a fence below that of a reader before", porcupine.Illegal, []porcupine.Operation{
			op(1, 0, 10, try(reader), granted("r1", 3)),
			op(1, 20, 30, release("r1"), ended(dlocktest.Done)),
			op(0, 40, 50, try(writer), granted("a", 2)),
		}},
		{"a writer alongside a reader", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(reader), granted("r1", 1)),
			op(1, 20, 30, try(writer), granted("a", 2)),
		}},
		{"a writer alongside a reader that has expired", porcupine.Ok, []porcupine.Operation{
			op(0, 0, 10, try(reader), granted("r1", 1)),
			op(9, 11, open, expire("r1"), ended(dlocktest.Unknown)),
			op(1, 20, 30, try(writer), granted("a", 2)),
			op(0, 40, 50, release("r1"), ended(dlocktest.Lost)),
		}},
		{"a reader alongside a writer", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(writer), granted("a", 1)),
			op(1, 20, 30, try(reader), granted("r1", 2)),
		}},
		{"a writer with the fence of before", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(writer), granted("a", 1)),
			op(0, 20, 30, release("a"), ended(dlocktest.Done)),
			op(1, 40, 50, try(writer), granted("b", 1)),
		}},
		{"a reader is refused what is free", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(reader), granted("r1", 1)),
			op(1, 20, 30, try(reader), ended(dlocktest.Refused)),
		}},
		{"a release of one reader frees no other", porcupine.Illegal, []porcupine.Operation{
			op(0, 0, 10, try(reader), granted("r1", 1)),
			op(1, 0, 10, try(reader), granted("r2", 2)),
			op(0, 20, 30, release("r1"), ended(dlocktest.Done)),
			op(0, 40, 50, try(writer), granted("a", 3)),
		}},
	})
}

func TestCondModel(t *testing.T) {
	acquire := dlocktest.Call{Op: dlocktest.OpAcquire, N: 1}
	wake := dlocktest.Call{Op: dlocktest.OpWake, N: 1}
	sleep := func(owner, next string) dlocktest.Call {
		return dlocktest.Call{Op: dlocktest.OpSleep, Owner: owner, Next: next}
	}
	signal := func(owner string) dlocktest.Call { return dlocktest.Call{Op: dlocktest.OpSignal, Owner: owner} }
	done := ended(dlocktest.Done)
	asleep := []porcupine.Operation{ // a and b sleep, one after the other, and will be x and y; s signals
		op(0, 0, 1, acquire, granted("a", 1)),
		op(0, 2, 90, sleep("a", "x"), done),
		op(1, 3, 4, acquire, granted("b", 2)),
		op(1, 5, 90, sleep("b", "y"), done),
		op(2, 6, 7, acquire, granted("s", 3)),
		op(2, 8, 9, signal("s"), done),
		op(2, 10, 11, release("s"), done),
	}
	with := func(more ...porcupine.Operation) []porcupine.Operation {
		return append(slices.Clip(asleep), more...)
	}
	histories := []handmade{
		{"the first one wakes", porcupine.Ok, with(op(5, 2, 90, wake, granted("x", 4)))},
		{"both wake by one signal", porcupine.Illegal, with(
			op(5, 2, 40, wake, granted("x", 4)),
			op(3, 41, 42, release("x"), done),
			op(6, 5, 90, wake, granted("y", 5)),
		)},
		{"the second one wakes", porcupine.Illegal, with(op(6, 5, 90, wake, granted("y", 4)))},
		{"one wakes while another holds", porcupine.Illegal, with(
			op(3, 12, 13, acquire, granted("z", 4)),
			op(5, 2, 90, wake, granted("x", 5)),
		)},
		{"a signal by nobody", porcupine.Illegal, with(op(2, 20, 21, signal("s"), done))},
	}
	judge(t, dlocktest.CondModel(false), histories)
	histories[1].want, histories[2].want = porcupine.Ok, porcupine.Ok
	judge(t, dlocktest.CondModel(true), histories)
}

func TestRWMutexHistory(t *testing.T) {
	h := dlocktest.NewHistory()
	synctest.Test(t, func(t *testing.T) {
		l := semlock.RWMutex(memsem.New(memsem.Config{Permits: 8, TTL: 10 * time.Millisecond}), 8)
		load := dlocktest.Load{
			Keys: dlocktest.HistoryKeys(2), Rounds: testbedtest.Size(200, 2000), Permits: dlocktest.RWPermits,
			Hold: 30 * time.Millisecond, MaxWait: time.Hour, Seed: dlocktest.Seed(t),
		}
		load.Run(t.Context(), clients(8, func() *dlocktest.HistoryClient { return h.RW(l) })...)
	})
	h.Check(t, dlocktest.RWModel())
	h.CheckFences(t)
	if h.Disruptions() != 0 {
		t.Errorf("%d doubts without a fault", h.Disruptions())
	}
}

func TestMemlockCondHistory(t *testing.T) {
	h := dlocktest.NewHistory()
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New(memlock.Config{TTL: 10 * time.Millisecond})
		c := memlock.NewCond(l)
		load := dlocktest.CondLoad{Keys: dlocktest.HistoryKeys(2), Signals: 2, Quiet: 3 * time.Millisecond, MaxWait: time.Hour, Seed: dlocktest.Seed(t)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		load.Run(ctx, clients(8, func() *dlocktest.HistoryClient { return h.Cond(l, c) })...)
	})
	h.Check(t, dlocktest.CondModel(false))
	h.CheckFences(t)
	if h.Disruptions() != 0 || h.Grants() < 100 {
		t.Errorf("%d doubts without a fault, %d grants", h.Disruptions(), h.Grants())
	}
}

func TestMemlockResizeHistory(t *testing.T) {
	const permits = 4
	h := dlocktest.NewHistory()
	synctest.Test(t, func(t *testing.T) {
		s := memsem.New(memsem.Config{Permits: permits, TTL: 10 * time.Millisecond})
		load := dlocktest.Load{
			Keys: dlocktest.HistoryKeys(1), Rounds: 200, Permits: permits, Hold: 30 * time.Millisecond,
			MaxWait: time.Hour, Seed: dlocktest.Seed(t),
		}
		resizer := h.Semaphore(s)
		ctx, stop := context.WithCancel(t.Context())
		var resizing sync.WaitGroup
		resizing.Go(func() {
			for n := 1; ctx.Err() == nil; n = n%(2*permits) + 3 {
				if err := resizer.Resize(t.Context(), load.Keys[0], n); err != nil {
					t.Error(err)
				}
				<-time.After(7 * time.Millisecond)
			}
		})
		load.Run(t.Context(), clients(6, func() *dlocktest.HistoryClient { return h.Semaphore(s) })...)
		stop()
		resizing.Wait()
	})
	h.Check(t, dlocktest.SemaphoreModel(permits))
	if h.Disruptions() != 0 {
		t.Errorf("%d doubts without a fault", h.Disruptions())
	}
}
