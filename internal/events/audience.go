package events

// subject is what a listener waits for: the events of an order, of a customer or about a SKU; the zero value is all events.
type subject struct{ kind, name string }

// subject returns the narrowest that has all events which f chooses.
func (f Filter) subject() subject {
	switch {
	case f.Order != "":
		return subject{"order", f.Order}
	case f.Customer != "" && !f.wantsStock():
		return subject{"customer", f.Customer}
	case f.SKU != "":
		return subject{"sku", f.SKU}
	}
	return subject{}
}

// audience is what a feed knows of a subject that somebody listens to. Numbers are those of events in the ring.
type audience struct {
	listeners int
	changed   chan struct{} // closed when there is something new; nil when nobody waits for that
	next      uint64        // no event from this number on is about the subject
	lost      uint64        // an event before this number may be, and is not in the ring any more
}

// news returns what is closed when there is something new. It requires the mutex of the feed.
func (a *audience) news() <-chan struct{} {
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

// wake wakes those who wait for something new. It requires the mutex of the feed.
func (a *audience) wake() {
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// audiences has the audiences with listeners, and those of listeners that wait for this instance to read as much as
// another one.
type audiences struct {
	of   map[subject]*audience
	back audience
}

// join returns the audience of one more listener. An event that is already in the ring may be for it.
func (a *audiences) join(s subject, first, next uint64) *audience {
	one := a.of[s]
	if one == nil {
		one = &audience{next: next, lost: first}
		a.of[s] = one
	}
	one.listeners++
	return one
}

// leave removes a listener.
func (a *audiences) leave(s subject) {
	one := a.of[s]
	if one.listeners--; one.listeners == 0 {
		delete(a.of, s)
	}
}

// each calls do with the audiences that an event is about.
func (a *audiences) each(e Event, do func(*audience)) {
	one := func(s subject) {
		if found := a.of[s]; found != nil {
			do(found)
		}
	}
	one(subject{})
	if e.Order != nil {
		one(subject{"order", e.Order.ID})
		one(subject{"customer", e.Order.CustomerID})
	}
	for _, sku := range e.SKUs() {
		one(subject{"sku", sku})
	}
}

// wake wakes everybody.
func (a *audiences) wake() {
	a.back.wake()
	for _, one := range a.of {
		one.wake()
	}
}
