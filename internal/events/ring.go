package events

import "sort"

// decode makes an event of an entry, and reports whether it is one. It requires mu.
func (f *Feed) decode(e *kept) bool {
	if e.raw != "" {
		var err error
		if e.event, e.text, err = decode(e.raw); err != nil {
			f.stats.Foreign++
		}
		e.raw = ""
	}
	return e.text != ""
}

// evict makes room for an event. It requires mu.
func (f *Feed) evict() {
	old := f.at(f.first)
	f.before = old.at
	f.first++
	if f.listeners > 0 && f.decode(old) {
		f.audiences.each(old.event, func(a *audience) { a.lost = f.first })
	}
	*old = kept{}
}

// miss empties the ring, because events may have been missed. It requires mu.
func (f *Feed) miss() {
	clear(f.ring)
	f.first, f.before = f.next, position{}
	f.misses++
}

// after returns the number of the first event in the ring that follows p. The result found is false if p is not a position
// of this log, or if not all its successors are in the ring. The result ahead means that the feed may not have read p yet.
// The caller holds mu.
func (f *Feed) after(p position) (n uint64, found, ahead bool) {
	switch {
	case f.last.compare(p) < 0:
		return 0, false, true
	case p == position{}:
		return 0, false, false
	case p == f.last:
		return f.next, true, false
	case p == f.before:
		return f.first, true, false
	}
	i, found := sort.Find(int(f.next-f.first), func(i int) int { return p.compare(f.at(f.first + uint64(i)).at) })
	return f.first + uint64(i) + 1, found, false
}

// at returns event n of the ring. It requires mu.
func (f *Feed) at(n uint64) *kept { return &f.ring[n%uint64(len(f.ring))] }
