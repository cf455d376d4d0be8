package events_test

import (
	"maps"
	"slices"
	"sync/atomic"
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
		i.Held("b", "redis", 1, time.Now(), nil)() // the next event is published a moment later
		synctest.Wait()
		l := i.listen(t, events.Filter{SKU: "a"}, "")
		begin := time.Now()
		short, long := i.Held("a", "redis", 7, time.Now(), nil), i.Held("a", "redis", 8, time.Now(), nil)
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

// TestLeasesExpire: an event has the expiry of a lease that is in use, also after a renewal. So it does if the work outlived the lease.
func TestLeasesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := alone(t, events.PublisherConfig{})
		i.Held("a", "redis", 1, time.Now(), nil)() // the next event is published a moment later
		synctest.Wait()
		l := i.listen(t, events.Filter{}, "")
		begin := time.Now()
		at := func(d time.Duration) time.Time { return begin.Add(d).UTC().Round(0) }
		var renewed atomic.Bool
		expires := func() time.Time {
			if renewed.Load() {
				return begin.Add(4 * time.Second)
			}
			return begin.Add(2 * time.Second)
		}
		i.Held("short", "redis", 1, begin, expires)()
		ended := i.Held("long", "redis", 2, begin, expires)
		time.Sleep(time.Second)
		renewed.Store(true)
		time.Sleep(4 * time.Second)
		ended()
		type end struct{ until, expires time.Time }
		got := make(map[string][]end)
		for _, e := range locks(t, l) {
			for _, lease := range e.Leases {
				got[e.SKU] = append(got[e.SKU], end{lease.Until, lease.Expires})
			}
		}
		delete(got, "a")
		want := map[string][]end{
			"short": {{until: at(0)}}, // it was released in time
			"long":  {{expires: at(2 * time.Second)}, {expires: at(4 * time.Second)}, {at(5 * time.Second), at(4 * time.Second)}},
		}
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("ends of leases: %v, want %v", got, want)
		}
	})
}

// TestEventsCountThoseWhoWait: events have the number of orders that wait, also without a lease, until none waits. A wait that is over at
// once causes no event.
func TestEventsCountThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := alone(t, events.PublisherConfig{})
		l := i.listen(t, events.Filter{}, "")
		var waiting, counts atomic.Int64
		count := func(string) int { counts.Add(1); return int(waiting.Load()) }
		i.Waits("b", "redis", func(string) int { return 0 })
		for range 3 {
			waiting.Add(1)
			i.Waits("a", "redis", count)
		}
		const pause = 2100 * time.Millisecond // ends between two counts
		time.Sleep(pause)
		waiting.Add(2)
		time.Sleep(pause)
		waiting.Store(4)
		i.Held("a", "redis", 7, time.Now(), nil)()
		time.Sleep(pause)
		waiting.Store(0)
		type counted struct{ waiting, fence, leases int }
		var got []counted
		for _, e := range locks(t, l) {
			if e.SKU != "a" || e.Strategy != "redis" || e.Holder != "shop-1" {
				t.Errorf("an event of %+v", e)
			}
			got = append(got, counted{e.Waiting, int(e.Fence), len(e.Leases)})
		}
		if want := []counted{{3, 0, 0}, {5, 0, 0}, {4, 7, 1}, {0, 0, 0}}; !slices.Equal(got, want) {
			t.Errorf("waiting, fence and leases: %v, want %v", got, want)
		}
		for n, orders := range []int64{1, 0, 0} { // and once more, as nothing is left of the first time
			waiting.Store(orders)
			i.Waits("a", "redis", count)
			if e, want := locks(t, l), []int{1, 1, 0}[n]; len(e) != want {
				t.Errorf("%d events of %d orders that wait, want %d", len(e), orders, want)
			}
		}
		before := counts.Load()
		if time.Sleep(time.Minute); counts.Load() != before {
			t.Error("the publisher continues to count though no order waits")
		}
	})
}

// TestEventsHaveTheLatestLeases: an event has a bounded number of leases and refusals, the latest ones, and counts all leases. It always
// has the end of a lease that an earlier event had without one. Otherwise the lease looks as if it were in use.
func TestEventsHaveTheLatestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := alone(t, events.PublisherConfig{})
		first := i.Held("a", "redis", 1, time.Now(), nil) // the next event is published a moment later
		synctest.Wait()
		l := i.listen(t, events.Filter{}, "")
		first()
		const n, most = 100, 32
		for fence := range uint64(n) {
			ended := i.Held("a", "redis", fence+2, time.Now(), nil)
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
		if end := e.Leases[0]; end.Fence != 1 || end.Until.IsZero() {
			t.Errorf("the event begins with %+v, want the end of the first lease", end)
		}
		for k, lease := range e.Leases[1:] {
			if want := uint64(n + 2 - most + 1 + k); lease.Fence != want || e.Refused[k+1].Fence != want {
				t.Errorf("lease %d has fence %d, refusal %d, want %d", k, lease.Fence, e.Refused[k].Fence, want)
			}
		}
	})
}
