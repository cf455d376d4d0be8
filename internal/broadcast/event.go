package broadcast

// Event is what a subscription delivers: a message, or the notice that messages may
// have been missed.
type Event struct {
	Message Message // if Missed is nil
	Missed  *Missed
}

// Missed says that from the event before to the event after it there may have been
// messages which this subscription does not deliver. Who keeps a copy of something reads
// it anew. Notices that nobody has read yet become one.
type Missed struct {
	Reason Reason

	// Origin is the process whose messages are missing, if it is one, and the reason is Gap.
	Origin string

	// Count is how many messages are missing; 0 if that is not known. For Overflow they
	// are of topics of this subscription, for Gap of any.
	Count uint64
}

// Reason says why messages may have been missed. It is safe as a metric label.
type Reason string

// Reasons.
const (
	// Connected: messages arrive from here on, for the first time or again.
	Connected Reason = "connected"

	// Disconnected: no messages arrive from here on, until a later Missed says
	// Connected. A copy that is read anew now will have to be read again then.
	Disconnected Reason = "disconnected"

	// Overflow: the queue of this subscription was full.
	Overflow Reason = "overflow"

	// Gap: messages of a process were lost before they came here.
	Gap Reason = "gap"
)

// join is what two notices say together, of which b is the later one.
func (a Missed) join(b Missed) Missed {
	joined := Missed{Reason: Overflow}
	switch {
	case b.Reason == Connected || b.Reason == Disconnected:
		joined.Reason = b.Reason
	case a.Reason == Connected || a.Reason == Disconnected || a.Reason == b.Reason:
		joined.Reason = a.Reason
	}
	if joined.Reason == Gap && a.Origin == b.Origin {
		joined.Origin = a.Origin
	}
	if (joined.Reason == Gap || joined.Reason == Overflow) && a.Count > 0 && b.Count > 0 {
		joined.Count = a.Count + b.Count
	}
	return joined
}
