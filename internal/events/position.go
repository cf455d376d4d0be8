package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/broadcast"
)

const (
	// tickEvery is how often an instance tells how far it is at the latest.
	tickEvery = 5 * time.Second

	// tickPause is between two times, as where more come and go than are remembered all are new.
	tickPause = 100 * time.Millisecond

	// maxOrigins bounds the length of an id, to what headers have room for: 14 KB with names of
	// twenty letters. Where more speak nobody can come back without a reset; see book.room.
	maxOrigins = 256

	// forgotten is after how long without a tick an origin counts as dead.
	forgotten = 12 * tickEvery
)

// origin is a process since its start.
type origin struct{ name, epoch string }

func originOf(id broadcast.ID) origin { return origin{id.Origin, id.Epoch} }

func (o origin) id(seq uint64) broadcast.ID {
	return broadcast.ID{Origin: o.name, Epoch: o.epoch, Seq: seq}
}

func compareOrigins(a, b origin) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.epoch, b.epoch))
}

// position is how far somebody has heard each origin: everything up to the number, and
// nothing of the others.
type position map[origin]uint64

// String returns the id of an event behind which one has this position: first the
// identity of the event, then how far one is with the other origins.
func (p position) after(event origin) string {
	var b strings.Builder
	if seq, ok := p[event]; ok {
		b.WriteString(event.id(seq).String())
	}
	for _, o := range slices.SortedFunc(maps.Keys(p), compareOrigins) {
		if o == event {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(o.id(p[o]).String())
	}
	if b.Len() == 0 {
		return nowhere
	}
	return b.String()
}

// nowhere is the id of those who have heard nothing. An empty one would make clients forget
// theirs.
const nowhere = "-"

// parsePosition reads an id. It reports false for one that was not written here.
func parsePosition(id string) (position, bool) {
	p := position{}
	if id == nowhere {
		return p, true
	}
	for text := range strings.SplitSeq(id, " ") {
		at, err := broadcast.ParseID(text)
		if _, twice := p[originOf(at)]; err != nil || twice || len(p) == maxOrigins {
			return nil, false
		}
		p[originOf(at)] = at.Seq
	}
	return p, true
}

// known is what a feed knows of an origin.
type known struct {
	floor uint64 // everything that it published behind this number was heard, and is in the ring if it is an event
	first uint64 // that was heard since the feed has last missed something, or 0
	last  uint64 // that was heard
	heard time.Time
	kept  int  // of its events in the ring
	apart bool // it is in no book any more, or never was: ids do not name it
}

// book is what a feed knows of all origins.
type book struct {
	by map[origin]*known

	// What follows keeps anybody from hearing twice what ids do not tell that it has heard.
	apart int       // events in the ring whose origins are not in the book
	full  time.Time // when an origin found no room at last
}

// hear notes a message. It reports whether its origin is new, or has published what was not heard. An
// origin for which there is no room is neither.
func (b *book) hear(id broadcast.ID, now time.Time) (k *known, fresh bool) {
	k, ok := b.by[originOf(id)]
	if !ok {
		k = &known{}
		if k.apart = !b.room(now); k.apart {
			b.full = now
			return k, false
		}
		b.by[originOf(id)] = k
	}
	if k.first == 0 {
		fresh = !ok || id.Seq > k.last+1
		k.first = id.Seq
		if fresh {
			k.floor = id.Seq - 1
		}
	}
	k.last, k.heard = id.Seq, now
	return k, fresh
}

// keep notes that an event of k has come into the ring, and evict that the one with the number seq
// has left it.
func (b *book) keep(k *known) {
	k.kept++
	if k.apart {
		b.apart++
	}
}

func (b *book) evict(k *known, seq uint64) {
	k.kept--
	k.floor = max(k.floor, seq)
	if k.apart {
		b.apart--
	}
}

// miss notes that any of them may have published what was not heard, and that the ring is empty. They
// stay: what was heard of them is not to be told again to those who start anew.
func (b *book) miss() {
	b.apart = 0
	for _, k := range b.by {
		k.floor, k.first, k.kept = k.last, 0, 0
	}
}

// room drops the origins that have gone, and reports whether there is room for one more: one that
// lives does not make room for another, or they would push each other out all the time, and be new each time.
// Whoever comes back with an id that names one that was dropped has to start anew.
func (b *book) room(now time.Time) bool {
	var oldest origin
	var last *known
	for o, k := range b.by {
		switch {
		case now.Sub(k.heard) <= forgotten:
		case k.kept == 0:
			b.drop(o, k)
		case last == nil || k.heard.Before(last.heard):
			oldest, last = o, k
		}
	}
	if len(b.by) >= maxOrigins && last != nil {
		b.drop(oldest, last)
	}
	return len(b.by) < maxOrigins
}

func (b *book) drop(o origin, k *known) {
	delete(b.by, o)
	k.apart = true
	b.apart += k.kept
}

// crowded reports whether there are, or were lately, more origins than ids can name.
func (b *book) crowded(now time.Time) bool { return !b.full.IsZero() && now.Sub(b.full) <= forgotten }

// id returns the id of the event of an origin behind which one has heard as much as this feed. In a
// crowd it is one with which nobody can go on.
func (b *book) id(event origin, now time.Time) string {
	if b.crowded(now) {
		return nowhere
	}
	return b.position().after(event)
}

// position returns how far the feed is.
func (b *book) position() position {
	p := make(position, len(b.by))
	for o, k := range b.by {
		p[o] = k.last
	}
	return p
}

// verdict is what is known of somebody who comes back.
type verdict int

const (
	gone    verdict = iota // what came after may not be here any more
	present                // it is all here
	ahead                  // this feed has not heard yet what the other one had; it may be about to
)

// judge says whether everything is in the ring that somebody has not heard who is at p.
func (b *book) judge(p position, now time.Time) verdict {
	if b.apart > 0 || b.crowded(now) {
		return gone
	}
	found, since := present, false
	for o, seq := range p {
		k, ok := b.by[o]
		switch {
		case !ok || seq > k.last: // of an origin that lives it will be told in a moment how far it is
			found = ahead
		case seq < k.floor:
			return gone
		case k.first > 0 && seq >= k.first:
			since = true
		}
	}
	for o, k := range b.by {
		if _, ok := p[o]; !ok && (k.floor > 0 || now.Sub(k.heard) > 2*tickEvery) {
			return gone // it may have heard, and forgotten, one that is silent
		}
	}
	if found == present && !since {
		// It has heard nothing of what came since something was missed here: so it may lack what
		// was missed, of origins that neither knows.
		return gone
	}
	return found
}
