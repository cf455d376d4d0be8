package dlocktest

import (
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/dlock"
)

// rwState is what the read/write lock remembers.
type rwState struct {
	own bool // readers have fencing tokens of their own

	writer  holder // with no owner if nobody writes
	readers holders
	fence   dlock.Fence // of the last writer, or of the first reader
	lapsed  bool        // fence is that of a writer which may have expired
	max     uint64      // the highest token so far, if readers have their own
	ghosts  int         // attempts with an unknown outcome, which may have taken the lock for nobody
}

// RWModel is the model of a read/write lock with a shared fence, as [dlock.RWLocker] defines it. A writer excludes all
// others and has a greater token than every earlier holder. Readers share, and have the fencing token of the last
// writer, or a new one if that writer expired. A free key is not refused, and only a holder releases. A Call with
// [RWPermits] is the writer's. Every key is a separate lock.
//
// An unknown writer may have raised the token that readers see, and any unknown attempt explains any later refusal.
func RWModel() porcupine.Model { return rwModel(rwState{}) }

// RWModelOwnFences is the same for a store in which every grant has a fencing token of its own. A reader's token is
// greater than that of every earlier writer. A writer's token is greater than that of every earlier holder.
func RWModelOwnFences() porcupine.Model { return rwModel(rwState{own: true}) }

func rwModel(fresh rwState) porcupine.Model {
	m := model(fresh, rwState.step, func(seed maphash.Seed, s rwState) uint64 {
		return maphash.Comparable(seed, s.writer) ^ s.readers.hash(seed)
	})
	m.Equal = func(a, b any) bool {
		x, y := a.(rwState), b.(rwState)
		return x.writer == y.writer && x.fence == y.fence && x.lapsed == y.lapsed && x.max == y.max && x.ghosts == y.ghosts && slices.Equal(x.readers, y.readers)
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
	newer := o.Fence.Token > s.fence.Token
	if s.own {
		newer = newer && (!write || o.Fence.Token > s.max)
		s.max = max(s.max, o.Fence.Token)
	}
	if write {
		s.writer, s.readers, s.fence, s.lapsed = holder{owner: o.owner(), n: RWPermits}, nil, o.Fence, false
		return newer, s
	}
	fresh := s.fence.Token == 0 || s.ghosts > 0 || s.lapsed
	legal := o.Fence == s.fence || newer && fresh
	if s.own {
		legal = newer
	} else {
		s.fence = o.Fence
	}
	i, held := s.readers.find(o.owner())
	s.writer, s.lapsed = holder{}, false
	s.readers = s.readers.with(i, holder{owner: o.owner(), n: 1})
	return legal && !held, s
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
		s.writer.lapsing, s.lapsed = true, true
	}
	s.readers = s.readers.expire(owner)
	return s
}
