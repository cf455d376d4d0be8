package app

import (
	"maps"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/events"
)

// membershipDiff follows who is in the cluster, to tell of changes. Of all instances the one whose
// name comes first tells: so each change is told once, as long as they see the same.
type membershipDiff struct {
	self   string
	events *eventLog
	seen   map[string]cluster.Member // nil until the first view
}

// compare compares a view with the one before.
func (c *membershipDiff) compare(view cluster.View) {
	now := make(map[string]cluster.Member, len(view.Members))
	for _, m := range view.Members {
		now[m.Name] = m
	}
	before := c.seen
	c.seen = now
	if before == nil { // who was there before this instance is no news
		before = maps.Clone(now)
		delete(before, c.self)
	}
	if len(view.Members) == 0 || view.Members[0].Name != c.self {
		return
	}
	for name, m := range before {
		if is, ok := now[name]; !ok || !is.Started.Equal(m.Started) {
			c.events.Member(memberEvent(m, true))
		}
	}
	for _, m := range view.Members {
		if was, ok := before[m.Name]; !ok || !was.Started.Equal(m.Started) {
			c.events.Member(memberEvent(m, false))
		}
	}
}

func memberEvent(m cluster.Member, left bool) events.Member {
	return events.Member{Name: m.Name, Address: m.Address, Role: m.Role, Left: left}
}
