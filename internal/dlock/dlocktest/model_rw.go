package dlocktest

import (
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/dlock"
)

// rwState is what the read/write lock remembers.
type rwState struct {
	writer  holder // with no owner if nobody writes
	readers holders
	fence   dlock.Fence // of the last writer
	max     uint64      // the highest token so far
	ghosts  int         // attempts with an unknown outcome, which may have taken the lock for nobody
}

// RWModel is the model of a read/write lock, as [dlock.RWLocker] defines it. A writer excludes all others and has a
// greater token than every earlier holder. Readers share, and each has a token of its own, greater than that of every
// earlier writer. A free key is not refused, and only a holder releases. A Call with [RWPermits] is the writer's. Every
// key is a separate lock. Any unknown attempt explains any later refusal.
func RWModel() porcupine.Model {
	m := model(rwState{}, rwState.step, func(seed maphash.Seed, s rwState) uint64 {
		return maphash.Comparable(seed, s.writer) ^ s.readers.hash(seed)
	})
	m.Equal = func(a, b any) bool {
		x, y := a.(rwState), b.(rwState)
		return x.writer == y.writer && x.fence == y.fence && x.max == y.max && x.ghosts == y.ghosts && slices.Equal(x.readers, y.readers)
	}
	return m
}

// step reports whether the lock may answer so, and what it is afterwards.
func (s rwState) step(c Call, o Outcome) (bool, rwState) {
	switch c.Op {
	case OpTry, OpAcquire:
		return s.ask(c.N == RWPermits, o)
	case OpRelease:
		return s.release(c.Owner, o.Result)
	case OpExpire:
		return true, s.expire(c.Owner)
	default:
		return false, s
	}
}

func (s rwState) ask(write bool, o Outcome) (bool, rwState) {
	switch o.Result {
	case Done:
		return s.take(write, o)
	case Refused:
		held := s.writer.owner != "" || write && len(s.readers) > 0
		return held || o.Queued || s.ghosts > 0, s
	case Unknown:
		s.ghosts++
		return true, s
	default:
		return false, s
	}
}

func (s rwState) take(write bool, o Outcome) (bool, rwState) {
	firm := func(h holder) bool { return !h.lapsing }
	if s.writer.owner != "" && firm(s.writer) || write && slices.ContainsFunc(s.readers, firm) {
		return false, s
	}
	newer := o.Fence.Token > s.fence.Token && (!write || o.Fence.Token > s.max)
	s.max = max(s.max, o.Fence.Token)
	if write {
		s.writer, s.readers, s.fence = holder{owner: o.Fence.Owner, n: RWPermits}, nil, o.Fence
		return newer, s
	}
	i, held := s.readers.find(o.Fence.Owner)
	s.writer = holder{}
	s.readers = s.readers.with(i, holder{owner: o.Fence.Owner, n: 1})
	return newer && !held, s
}

func (s rwState) release(owner string, r Result) (bool, rwState) {
	if r == Unknown {
		return true, s.expire(owner)
	}
	i, reads := s.readers.find(owner)
	var lapsing bool
	switch {
	case s.writer.owner == owner:
		lapsing = s.writer.lapsing
		s.writer = holder{}
	case reads:
		lapsing = s.readers[i].lapsing
		s.readers = s.readers.without(i)
	default:
		return r == Lost, s
	}
	return r == Done || r == Lost && lapsing, s
}

func (s rwState) expire(owner string) rwState {
	if s.writer.owner == owner {
		s.writer.lapsing = true
	}
	s.readers = s.readers.expire(owner)
	return s
}
