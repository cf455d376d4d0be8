package dlocktest

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// condState is a lock and its waiters, each list in its order.
type condState struct {
	lock          lockState
	asleep, awake string // owners of the grants to come: without a signal, and with one
}

// CondModel is the model of a lock with a condition, as [dlock.Cond] defines it. It extends [LockModel]. A wait ends
// with the lock held, after a signal that was sent while it slept. A signal is for the longest sleeper, a broadcast for
// all, and only the holder sends them. Every key has its own condition.
//
// With spurious a wait may end without a signal too: a store that fails must rather
// wake one too many.
func CondModel(spurious bool) porcupine.Model {
	step := func(s condState, c Call, o Outcome) (bool, condState) { return s.step(c, o, spurious) }
	return model(condState{}, step, maphash.Comparable[condState])
}

// step reports whether the condition may answer so, and what it is afterwards.
func (s condState) step(c Call, o Outcome, spurious bool) (legal bool, next condState) {
	switch c.Op {
	case OpSleep:
		legal, s.lock = s.lock.release(c.Owner, o.Result)
		s.asleep = join(append(list(s.asleep), c.Next))
		return legal && o.Result == Done, s
	case OpWake:
		var woken bool
		me := o.Fence.Owner
		s.awake, woken = without(s.awake, me)
		if !woken && spurious {
			s.asleep, woken = without(s.asleep, me)
		}
		legal, s.lock = s.lock.take(o)
		return legal && woken, s
	case OpSignal, OpBroadcast:
		return s.signal(c, o.Result)
	default:
		legal, s.lock = s.lock.step(c, o)
		return legal, s
	}
}

func (s condState) signal(c Call, r Result) (bool, condState) {
	mine := s.lock.owner == c.Owner
	switch r {
	case Done:
		sleepers := list(s.asleep)
		n := len(sleepers)
		if c.Op == OpSignal {
			n = min(n, 1)
		}
		s.awake, s.asleep = join(append(list(s.awake), sleepers[:n]...)), join(sleepers[n:])
		return mine, s
	case Lost:
		return !mine || s.lock.lapsing, s
	default:
		return r == Unknown, s
	}
}

// A state is compared, so its lists are strings.

func list(text string) []string { return strings.Fields(text) }

func join(list []string) string { return strings.Join(list, " ") }

// without takes one out of a list, and reports whether it was there.
func without(text, one string) (string, bool) {
	all := list(text)
	i := slices.Index(all, one)
	if i < 0 {
		return text, false
	}
	return join(slices.Delete(all, i, i+1)), true
}
