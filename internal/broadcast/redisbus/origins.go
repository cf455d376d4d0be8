package redisbus

import (
	"time"

	"example.com/shop/internal/broadcast"
)

// remember is how long the number of an origin that has ceased to speak is kept, so that
// what a network has held back for so long is still known to be old.
const remember = time.Hour

// origins follows the numbers of all that speak on the channel. It finds what was lost
// on the way here, and whom nobody hears any more.
type origins struct {
	by    map[origin]*last
	swept time.Time
}

// origin is one life of a process.
type origin struct{ name, epoch string }

// last is what is known of an origin.
type last struct {
	seq   uint64
	heard time.Time
	gone  bool // it has said goodbye, or everybody has been told that it is silent
}

// follow takes the next frame that arrived. It reports whether the frame is a message
// to deliver, and what has been lost before it: nil if nothing was.
//
// The first number of an origin that is not 1 is a gap, too: what came before it may have
// been published after this process began to hear.
func (o *origins) follow(f frame, now time.Time) (fresh bool, lost *broadcast.Missed) {
	id := f.message.ID
	l, known := o.by[origin{id.Origin, id.Epoch}]
	if !known {
		l = &last{}
		o.by[origin{id.Origin, id.Epoch}] = l
	}
	if f.kind == say && id.Seq <= l.seq {
		return false, nil // held back on the way, or sent twice: it counts as lost already
	}
	l.heard, l.gone = now, f.kind == bye
	next := id.Seq
	if f.kind == say {
		next--
	}
	if next > l.seq {
		lost = &broadcast.Missed{Reason: broadcast.Gap, Origin: id.Origin}
		if known {
			lost.Count = next - l.seq
		}
	}
	l.seq = max(l.seq, id.Seq)
	return f.kind == say, lost
}

// silent returns the origins that have not been heard of for so long, each once: if they
// died, what they published last may have been lost. Most calls do not look.
func (o *origins) silent(now time.Time, after time.Duration) (names []string) {
	if now.Sub(o.swept) < after/4 {
		return nil
	}
	o.swept = now
	for key, l := range o.by {
		switch quiet := now.Sub(l.heard); {
		case quiet > remember:
			delete(o.by, key)
		case quiet > after && !l.gone:
			l.gone = true
			names = append(names, key.name)
		}
	}
	return names
}

// resume says that nothing could be heard until now.
func (o *origins) resume(now time.Time) {
	for _, l := range o.by {
		l.heard = now
	}
}
