package app

import (
	"maps"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/events"
)

// membershipDiff publishes changes of the cluster's members. The instance with the first name
// publishes, so each change is published once while all instances see the same members.
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
	if before == nil { // the first list has no changes
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
