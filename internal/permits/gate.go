package permits

import (
	"sync/atomic"
)

// gate counts operations against a capacity, both in one word, so that "is there
// room" and "take it" are one step. The capacity is in the upper half. It may be
// lowered below what is in use: then nobody enters until enough have left.
type gate struct{ word atomic.Uint64 }

func pack(capacity, used int) uint64 { return uint64(capacity)<<32 | uint64(uint32(used)) }

func unpack(word uint64) (capacity, used int) { return int(word >> 32), int(uint32(word)) }

// load returns the capacity and how much of it is in use.
func (g *gate) load() (capacity, used int) { return unpack(g.word.Load()) }

// enter takes one place if there is one. It returns how many are in use then.
func (g *gate) enter() (capacity, used int, ok bool) {
	for {
		word := g.word.Load()
		capacity, used = unpack(word)
		if used >= capacity {
			return capacity, used, false
		}
		if g.word.CompareAndSwap(word, word+1) {
			return capacity, used + 1, true
		}
	}
}

// leave gives one place back, and returns what is in use then.
func (g *gate) leave() (capacity, used int) { return unpack(g.word.Add(^uint64(0))) }

// resize sets the capacity, whatever is in use.
func (g *gate) resize(capacity int) {
	for {
		word := g.word.Load()
		_, used := unpack(word)
		if g.word.CompareAndSwap(word, pack(capacity, used)) {
			return
		}
	}
}
