package dlocktest

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"
)

// semaphoreState is what the semaphore remembers.
type semaphoreState struct {
	limit   int
	ghosts  int // permits that unknown attempts may have taken
	holders holders
}

type holder struct {
	owner   string
	n       int
	lapsing bool // the permits may be back
}

// holders are in the order of their owners. Nothing changes the slice.
type holders []holder

// find returns where owner is, or belongs.
func (h holders) find(owner string) (int, bool) {
	return slices.BinarySearchFunc(h, owner, func(h holder, owner string) int { return cmp.Compare(h.owner, owner) })
}

func (h holders) with(i int, one holder) holders { return slices.Insert(slices.Clone(h), i, one) }

func (h holders) without(i int) holders { return slices.Delete(slices.Clone(h), i, i+1) }

// expire returns h, in which the permits of owner may be back.
func (h holders) expire(owner string) holders {
	i, held := h.find(owner)
	if held {
		h = slices.Clone(h)
		h[i].lapsing = true
	}
	return h
}

func (h holders) hash(seed maphash.Seed) (sum uint64) {
	for _, one := range h {
		sum ^= maphash.Comparable(seed, one)
	}
	return sum
}

// SemaphoreModel is what [dlock.Semaphore] promises. It never grants more permits than there are. It never refuses
// free permits that nobody waits for, and releases only what is held. Every key is a separate semaphore. An expired
// holder can explain a refusal, and prevents no grant.
func SemaphoreModel(permits int) porcupine.Model {
	m := model(semaphoreState{limit: permits}, semaphoreState.step,
		func(seed maphash.Seed, s semaphoreState) uint64 { return s.holders.hash(seed) })
	m.Equal = func(a, b any) bool {
		x, y := a.(semaphoreState), b.(semaphoreState)
		return x.limit == y.limit && x.ghosts == y.ghosts && slices.Equal(x.holders, y.holders)
	}
	return m
}

// step reports whether the semaphore may answer so, and what it is afterwards.
func (s semaphoreState) step(c Call, o Outcome) (bool, semaphoreState) {
	switch c.Op {
	case OpTry, OpAcquire:
		return s.take(c.N, o)
	case OpRelease:
		return s.release(c.Owner, o.Result)
	case OpExpire:
		s.holders = s.holders.expire(c.Owner)
		return true, s
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
		i, held := s.holders.find(o.Fence.Owner)
		if held || firm+n > s.limit {
			return false, s
		}
		s.holders = s.holders.with(i, holder{owner: o.Fence.Owner, n: n})
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
	i, held := s.holders.find(owner)
	lapsing := held && s.holders[i].lapsing
	if r == Unknown {
		s.holders = s.holders.expire(owner)
		return true, s
	}
	legal := r == Done && held || r == Lost && (!held || lapsing)
	if held {
		s.holders = s.holders.without(i)
	}
	return legal, s
}
