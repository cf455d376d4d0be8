package dlocktest

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"
)

// semaphoreState is what the semaphore remembers. It never changes a slice.
type semaphoreState struct {
	limit   int
	ghosts  int // permits that unknown attempts may have taken
	holders []holder
}

type holder struct {
	owner   string
	n       int
	lapsing bool // the permits may be back
}

// SemaphoreModel is what [dlock.Semaphore] promises. It never grants more permits than there are. It never refuses
// free permits that nobody waits for, and releases only what is held. Every key is a separate semaphore. An expired
// holder can explain a refusal, and prevents no grant.
func SemaphoreModel(permits int) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return semaphoreState{limit: permits} },
		Step: func(state, input, output any) (bool, any) {
			s, c, o := state.(semaphoreState), input.(Call), output.(Outcome)
			return s.step(c, o)
		},
		Equal: func(a, b any) bool {
			x, y := a.(semaphoreState), b.(semaphoreState)
			return x.limit == y.limit && x.ghosts == y.ghosts && slices.Equal(x.holders, y.holders)
		},
		Hash: func(state any) uint64 {
			var sum uint64
			for _, h := range state.(semaphoreState).holders {
				sum ^= maphash.Comparable(seed, h)
			}
			return sum
		},
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// step reports whether the semaphore may answer so, and what it is afterwards.
func (s semaphoreState) step(c Call, o Outcome) (bool, semaphoreState) {
	switch c.Op {
	case OpTry, OpAcquire:
		return s.take(c.N, o)
	case OpRelease:
		return s.release(c.Owner, o.Result)
	case OpExpire:
		return true, s.expire(c.Owner)
	case OpResize:
		s.limit = c.N
		return true, s
	default:
		return false, s
	}
}

func (s semaphoreState) take(n int, o Outcome) (bool, semaphoreState) {
	firm, all := 0, s.ghosts
	for _, h := range s.holders {
		all += h.n
		if !h.lapsing {
			firm += h.n
		}
	}
	switch o.Result {
	case Done:
		i, held := s.find(o.Fence.Owner)
		if held || firm+n > s.limit {
			return false, s
		}
		s.holders = slices.Insert(slices.Clone(s.holders), i, holder{owner: o.Fence.Owner, n: n})
		return true, s
	case Refused:
		return o.Queued || all+n > s.limit, s
	case Invalid:
		return n > s.limit, s
	case Unknown:
		s.ghosts += n
		return true, s
	default:
		return false, s
	}
}

func (s semaphoreState) release(owner string, r Result) (bool, semaphoreState) {
	i, held := s.find(owner)
	lapsing := held && s.holders[i].lapsing
	if r == Unknown {
		return true, s.expire(owner)
	}
	legal := r == Done && held || r == Lost && (!held || lapsing)
	if held {
		s.holders = slices.Delete(slices.Clone(s.holders), i, i+1)
	}
	return legal, s
}

func (s semaphoreState) expire(owner string) semaphoreState {
	if i, held := s.find(owner); held {
		s.holders = slices.Clone(s.holders)
		s.holders[i].lapsing = true
	}
	return s
}

// find returns where owner is, or belongs, among the holders.
func (s semaphoreState) find(owner string) (int, bool) {
	return slices.BinarySearchFunc(s.holders, owner, func(h holder, owner string) int { return cmp.Compare(h.owner, owner) })
}
