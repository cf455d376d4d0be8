package zklock

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"example.com/shop/internal/platform/zookeeper"
)

// label comes in the name of a node between its ID and its number.
const label = "lease-"

// place is a node of a queue, parsed from its name: ID-lease-NUMBER.
type place struct {
	name, id string
	number   int32
}

// parse returns false for a node that is none of a queue.
func parse(name string) (place, bool) {
	id, digits, ok := strings.Cut(name, "-"+label)
	if !ok || id == "" {
		return place{}, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return place{name, id, int32(n)}, err == nil
}

// before compares numbers that wrap around: ZooKeeper continues with the least number
// after 2^31 nodes, which a busy queue reaches in weeks.
func (p place) before(other place) bool { return p.number-other.number < 0 }

// sorted returns those of names that are places, the first one first.
func sorted(names []string) []place {
	places := make([]place, 0, len(names))
	for _, name := range names {
		if p, ok := parse(name); ok {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.number-b.number, 0) })
	return places
}

// position is the position of a node in its queue.
type position struct {
	found bool   // whether it is there at all
	ahead int    // how many it has to wait for
	last  string // the name of the last one of them
}

// positionOf finds id among names, without sorting them.
func positionOf(names []string, id string) position {
	places := make([]place, 0, len(names))
	var own place
	for _, name := range names {
		p, ok := parse(name)
		if !ok {
			continue
		}
		if p.id == id {
			own = p
		}
		places = append(places, p)
	}
	s := position{found: own.id != ""}
	var last place
	for _, p := range places {
		if !s.found || !p.before(own) {
			continue
		}
		if s.ahead++; s.ahead == 1 || last.before(p) {
			last = p
		}
	}
	s.last = last.name
	return s
}

// contended reports whether a new node would have to wait for one of names.
func contended(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := parse(name)
		return ok
	})
}

func (l *Locker) dir(key string) string { return l.queue.cfg.Prefix + "/" + zookeeper.Escape(key) }
