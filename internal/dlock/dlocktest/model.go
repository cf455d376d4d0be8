package dlocktest

import (
	"fmt"
	"hash/maphash"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/dlock"
)

// Op is what a client of a lock or of a semaphore does, or what happens to it.
type Op string

// The operations of a history. OpExpire is no call: from then on the store may let others in, although Owner has not
// released. It is recorded if a holder reports a loss, or if a harness pauses a holder or wipes the store. A Wait of a
// condition is two concurrent operations. OpSleep ends the grant of the caller and begins to wait. OpWake ends the
// wait with a new grant.
const (
	OpTry       Op = "try"
	OpAcquire   Op = "acquire"
	OpRelease   Op = "release"
	OpExpire    Op = "expire"
	OpResize    Op = "resize"
	OpSleep     Op = "sleep"
	OpWake      Op = "wake"
	OpSignal    Op = "signal"
	OpBroadcast Op = "broadcast"
)

// Call is the input of one operation.
type Call struct {
	Op    Op
	Key   string
	Owner string // of the grant that is released or expires, or by which is signalled
	Next  string // who sleeps: the owner of the grant to come
	N     int    // how many permits are taken, or left by a resize; 1 for a lock, and see RWModel
}

// Result is the end of an operation, as far as its client can know.
type Result string

// The results. Refused is for OpTry, Lost for OpRelease, Invalid for more permits than
// there are. An operation whose
// result is Unknown may take effect at any later time, or never.
const (
	Done    Result = "ok"
	Refused Result = "refused"
	Invalid Result = "invalid"
	Lost    Result = "lost"
	Unknown Result = "unknown"
)

// Outcome is the output of one operation.
type Outcome struct {
	Result Result
	Fence  dlock.Fence // of a grant
	// Queued says that others were waiting, for which a refusal needs no other reason.
	Queued bool
}

// lockState is the state of the fenced lock.
//
// An attempt with an unknown outcome may take the lock for nobody at any later time, and release it at any time after
// that. Others can see only refusals of a lock that should be free. So the model does not search for the time of the
// attempt. It counts such ghosts, and uses one where a refusal has no other explanation. This decides the same
// histories, in linear instead of exponential time.
type lockState struct {
	owner   string // of the grant; "" if the lock is free
	lapsing bool   // the grant may be gone
	max     uint64 // the highest token so far
	ghosts  int    // unknown attempts that have not been used as an explanation
}

// ghost is the owner of a lock that an unknown attempt has taken.
const ghost = "?"

// LockModel is the lock that [dlock.Locker] promises. It has one holder at a time, and its tokens increase with every
// grant. It never refuses a free lock, and only the holder can release it. Every key is a separate lock.
func LockModel() porcupine.Model {
	return model(lockState{}, lockState.step, maphash.Comparable[lockState])
}

// model is the model of a service, each of whose keys begins in a state. step reports whether it may answer a call so, and
// returns its state afterwards.
func model[S any](fresh S, step func(S, Call, Outcome) (bool, S), hash func(maphash.Seed, S) uint64) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return fresh },
		Step: func(state, input, output any) (bool, any) {
			return step(state.(S), input.(Call), output.(Outcome))
		},
		Hash:              func(state any) uint64 { return hash(seed, state.(S)) },
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// step reports whether the lock may answer so, and what it is afterwards.
func (s lockState) step(c Call, o Outcome) (bool, lockState) {
	switch c.Op {
	case OpTry, OpAcquire:
		return s.take(o)
	case OpRelease:
		return s.release(c.Owner, o.Result)
	case OpExpire:
		if s.owner == c.Owner {
			s.lapsing = true
		}
		return true, s
	default:
		return false, s
	}
}

func (s lockState) take(o Outcome) (bool, lockState) {
	switch o.Result {
	case Done:
		if s.owner != "" && !s.lapsing || o.Fence.Token <= s.max {
			return false, s
		}
		return true, lockState{owner: o.Fence.Owner, max: o.Fence.Token, ghosts: s.ghosts}
	case Refused:
		if s.owner != "" || o.Queued {
			return true, s
		}
		if s.ghosts == 0 {
			return false, s
		}
		return true, lockState{owner: ghost, lapsing: true, max: s.max, ghosts: s.ghosts - 1}
	case Unknown:
		s.ghosts++
		return true, s
	default:
		return false, s
	}
}

func (s lockState) release(owner string, r Result) (bool, lockState) {
	mine := s.owner == owner
	free := lockState{max: s.max, ghosts: s.ghosts}
	switch r {
	case Done:
		return mine, free
	case Lost:
		if mine {
			return s.lapsing, free
		}
		return true, s
	case Unknown:
		if mine {
			s.lapsing = true
		}
		return true, s
	default:
		return false, s
	}
}

// byKey parts a history into the histories of its keys, which do not depend on
// each other.
func byKey(ops []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	index := map[string]int{}
	for _, op := range ops {
		key := op.Input.(Call).Key
		i, ok := index[key]
		if !ok {
			i = len(parts)
			index[key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// describe is one operation in a line.
func describe(input, output any) string {
	c, o := input.(Call), output.(Outcome)
	text := fmt.Sprintf("%s %s", c.Op, c.Key)
	switch c.Op {
	case OpTry, OpAcquire, OpWake, OpResize:
		text += fmt.Sprintf(" n=%d", c.N)
	case OpRelease, OpExpire, OpSleep, OpSignal, OpBroadcast:
		text += " of " + short(c.Owner)
	}
	if c.Op == OpExpire {
		return text
	}
	if c.Next != "" {
		text += " before " + short(c.Next)
	}
	text += ": " + string(o.Result)
	if o.Fence.Owner != "" {
		text += fmt.Sprintf(" %s token %d", short(o.Fence.Owner), o.Fence.Token)
	}
	if o.Queued {
		text += " (others wait)"
	}
	return text
}

// short is enough of an owner to distinguish it from others, whichever end is random.
func short(owner string) string {
	if len(owner) <= 12 {
		return owner
	}
	return owner[:5] + ".." + owner[len(owner)-5:]
}
