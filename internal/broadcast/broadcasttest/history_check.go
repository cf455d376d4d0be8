package broadcasttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/broadcast"
)

// violations are the places where a subscription delivered what it must not, or kept
// silent about what it did not deliver.
func (h *History) violations() (all []string) {
	const most = 5 // more would say no more
	for _, w := range h.watches {
		w.mu.Lock()
		for i, s := range h.speakers {
			s.mu.Lock()
			all = append(all, w.check(i, s.said)...)
			s.mu.Unlock()
		}
		w.mu.Unlock()
	}
	return all[:min(len(all), most)]
}

// check looks at what w heard of one speaker. It requires the mutexes of both.
//
// Of every message that is not there, and was published after the first notice of the
// subscription had been read, two things are checked. There is a notice between the messages
// before it and after it that are there. And that notice was read after the message had
// been published: one that came before it said nothing about it.
func (w *watch) check(speaker int, said []said) (bad []string) {
	if len(w.heard) == 0 || w.heard[0].missed == "" {
		return []string{fmt.Sprintf("%s: the first event is no notice", w.name)}
	}
	from := w.heard[0].at
	next := uint64(1)             // the next number
	notices := []time.Duration{0} // when there were notices since the last message
	missing := func(upTo uint64, before string) {
		for ; next < upTo; next++ {
			m := said[next-1]
			if m.at < from || !w.wants(m.topic) {
				continue
			}
			if latest := notices[len(notices)-1]; latest < m.at {
				bad = append(bad, fmt.Sprintf("%s: number %d of bus %d, said at %v, is missing before %s; the last notice was at %v",
					w.name, next, speaker, m.at, before, latest))
			}
		}
	}
	for _, e := range w.heard {
		switch {
		case e.missed != "":
			notices = append(notices, e.at)
		case e.speaker != speaker:
		case e.number < next:
			bad = append(bad, fmt.Sprintf("%s: number %d of bus %d follows number %d", w.name, e.number, speaker, next-1))
		case e.number > uint64(len(said)) || said[e.number-1].topic != e.topic || !w.wants(e.topic):
			bad = append(bad, fmt.Sprintf("%s: number %d of bus %d on %s was never said, or not to be heard", w.name, e.number, speaker, e.topic))
		default:
			missing(e.number, fmt.Sprint("number ", e.number))
			next, notices = e.number+1, []time.Duration{0}
		}
	}
	return bad // those after the last one may still be on their way
}

// wants is the matching of patterns, written a second time.
func (w *watch) wants(topic string) bool {
	return slices.ContainsFunc(w.patterns, func(p string) bool {
		before, star := strings.CutSuffix(p, "*")
		return topic == p || star && strings.HasPrefix(topic, before)
	})
}

// summary says how much the history proves.
func (h *History) summary() string {
	published, delivered, notices := 0, 0, map[broadcast.Reason]int{}
	for _, s := range h.speakers {
		s.mu.Lock()
		published += len(s.said)
		s.mu.Unlock()
	}
	for _, w := range h.watches {
		w.mu.Lock()
		for _, e := range w.heard {
			if e.missed == "" {
				delivered++
			} else {
				notices[e.missed]++
			}
		}
		w.mu.Unlock()
	}
	return fmt.Sprintf("%d messages published, %d delivered to %d subscriptions, notices: %v", published, delivered, len(h.watches), notices)
}
