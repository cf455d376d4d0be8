package events_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

// locks returns the events about locks that a listener receives.
func locks(t *testing.T, l *events.Listener) (all []events.Lock) {
	t.Helper()
	for _, n := range receive(t, l) {
		if n.Event.Lock != nil {
			all = append(all, *n.Event.Lock)
		}
	}
	return all
}

// TestLeasesHaveABeginningAndAnEnd: an event has a lease that is still in use, and a later event has its end.
func TestLeasesHaveABeginningAndAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := alone(t, events.PublisherConfig{})
		l := i.listen(t, events.Filter{}, "")
		begin := time.Now()
		short, long := i.Lock("a", "redis", 7, time.Now()), i.Lock("a", "redis", 8, time.Now())
		short()
		time.Sleep(2 * time.Second)
		long()
		i.Refused("a", "redis", 8, 9)
		got := make(map[uint64][]events.Lease)
		count, refused := int64(0), []events.Refusal(nil)
		for _, e := range locks(t, l) {
			count += e.Count
			refused = append(refused, e.Refused...)
			for _, lease := range e.Leases {
				got[lease.Fence] = append(got[lease.Fence], lease)
			}
		}
		if count != 2 {
			t.Errorf("%d leases were counted, want 2", count)
		}
		if s := got[7]; len(s) != 1 || !s[0].From.Equal(begin) || !s[0].Until.Equal(begin) {
			t.Errorf("a lease that ended at once: %v", s)
		}
		if s := got[8]; len(s) != 2 || !s[0].Until.IsZero() || !s[1].From.Equal(begin) || !s[1].Until.Equal(begin.Add(2*time.Second)) {
			t.Errorf("a lease of 2 s: %v", s)
		}
		if len(refused) != 1 || refused[0].Fence != 8 || refused[0].Accepted != 9 || !refused[0].At.Equal(begin.Add(2*time.Second)) {
			t.Errorf("refused writes: %v", refused)
		}
	})
}

// TestEventsHaveTheLatestLeases: an event has a bounded number of leases and refusals, the latest ones, and counts all leases.
func TestEventsHaveTheLatestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := alone(t, events.PublisherConfig{})
		i.Lock("a", "redis", 1, time.Now())() // the next event is published a moment later
		synctest.Wait()
		l := i.listen(t, events.Filter{}, "")
		const n, most = 100, 32
		for fence := range uint64(n) {
			ended := i.Lock("a", "redis", fence+2, time.Now())
			i.Refused("a", "redis", fence+2, fence+3)
			ended()
		}
		all := locks(t, l)
		if len(all) == 0 {
			t.Fatal("no event")
		}
		e := all[len(all)-1]
		if len(all) > 2 || e.Count != n || len(e.Leases) != most || len(e.Refused) != most {
			t.Fatalf("%d events; %d leases are counted, %d leases, %d refusals", len(all), e.Count, len(e.Leases), len(e.Refused))
		}
		for k, lease := range e.Leases {
			if want := uint64(n + 2 - most + k); lease.Fence != want || e.Refused[k].Fence != want {
				t.Errorf("lease %d has fence %d, refusal %d, want %d", k, lease.Fence, e.Refused[k].Fence, want)
			}
		}
	})
}
