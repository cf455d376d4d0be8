package events_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

// Every instance receives the events that one of them publishes.
func TestEveryInstanceReceivesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 3, events.FeedConfig{})
		var listeners []*events.Listener
		for _, i := range all {
			listeners = append(listeners, i.listen(t, events.Filter{}, ""))
		}
		all[0].place("a")
		appended()
		all[1].Leader(events.Leader{Name: "shop-2", Term: 7})
		appended()
		all[2].place("b")
		for _, l := range listeners {
			notices := wantSaid(t, l, "start", "a", "leader", "b")
			if e := notices[1].Event; e.Instance != "shop-1" || !strings.Contains(notices[1].Text, `"customer_id":"c1"`) {
				t.Errorf("%+v", notices[1])
			}
		}
	})
}

func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{})
		i := all[0]
		var listeners []*events.Listener
		cases := []struct {
			filter events.Filter
			want   []string
		}{
			{events.Filter{}, []string{"o1", "o2", "member", "leader", "lock", "timer"}},
			{events.Filter{Types: []events.Type{events.TypeOrder, events.TypeLeader}}, []string{"o1", "o2", "leader"}},
			{events.Filter{SKU: "a"}, []string{"o1", "o2", "lock"}},
			{events.Filter{SKU: "b"}, []string{"o2"}},
			{events.Filter{Order: "o2"}, []string{"o2"}},
			{events.Filter{Customer: "c1"}, []string{"o1"}},
			{events.Filter{Customer: "c1", Order: "o2"}, nil},
			{events.Filter{Customer: "c2", SKU: "a"}, []string{"o2"}},
			{events.Filter{Customer: "c3"}, nil},
			{events.Filter{Customer: "c1", Types: []events.Type{events.TypeLock}}, nil},
			{events.Filter{Customer: "c1", Types: []events.Type{events.TypeLock, events.TypeStock, events.TypeOrder}}, []string{"o1"}},
		}
		for _, c := range cases {
			listeners = append(listeners, i.listen(t, c.filter, ""))
		}
		i.Order(events.Order{ID: "o1", CustomerID: "c1", Items: []events.Item{{SKU: "a", Quantity: 1}}})
		i.Order(events.Order{ID: "o2", CustomerID: "c2", Items: []events.Item{{SKU: "a", Quantity: 1}, {SKU: "b", Quantity: 1}}})
		i.Member(events.Member{Name: "shop-9"})
		i.Leader(events.Leader{Name: "shop-9"})
		i.Held("a", "redis", 3, time.Now(), nil)
		synctest.Wait()
		i.Timers("order.expire", "committed", 3)
		for n, l := range listeners {
			wantSaid(t, l, append([]string{"start"}, cases[n].want...)...)
		}
	})
}

// TestListenerBeforeTheFirstRead starts once, when the instance has read the log.
func TestListenerBeforeTheFirstRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &testLog{shared: newShared(), opens: make(chan struct{})}
		i := join(t, log, "shop-1", events.FeedConfig{}, events.PublisherConfig{})
		l := i.listen(t, events.Filter{}, "")
		time.AfterFunc(time.Second, func() {
			close(log.opens)
			appended()
			i.place("a")
		})
		wantSaid(t, l, "start", "a")
	})
}

// TestOutageOfTheLogIsReportedOnce, also one from before the first read.
func TestOutageOfTheLogIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &testLog{shared: newShared()}
		log.unreadable.Store(true)
		var complaints atomic.Int64
		i := join(t, log, "shop-1", events.FeedConfig{OnError: func(error) { complaints.Add(1) }}, events.PublisherConfig{})
		for n := range int64(3) {
			time.Sleep(time.Minute)
			if s := i.feed.Stats(); complaints.Load() != n+1 || s.Live || s.Missed > 0 {
				t.Errorf("outage %d: %d complaints, %+v", n, complaints.Load(), s)
			}
			log.unreadable.Store(false)
			time.Sleep(time.Minute)
			if s := i.feed.Stats(); !s.Live || s.Missed > 0 {
				t.Errorf("after outage %d: %+v", n, s)
			}
			log.unreadable.Store(true)
		}
	})
}

// TestEventsAreAppendedOnce when the log was unavailable, and in their order.
func TestEventsAreAppendedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		want := []string{"start"}
		for n := range 20 {
			all[0].log.away.Store(n%5 != 4)
			all[0].place(strconv.Itoa(n))
			want = append(want, strconv.Itoa(n))
			time.Sleep(time.Second)
		}
		wantSaid(t, l, want...)
	})
}

// TestSlowListenerIsReset, and costs nobody else anything.
func TestSlowListenerIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{Buffer: 10})
		slow, quick := all[0].listen(t, events.Filter{}, ""), all[0].listen(t, events.Filter{}, "")
		wantSaid(t, slow, "start")
		wantSaid(t, quick, "start")
		for n := range 11 {
			all[0].place(strconv.Itoa(n))
			wantSaid(t, quick, strconv.Itoa(n))
		}
		id := wantSaid(t, slow, "slow")[0].ID
		all[0].place("b")
		wantSaid(t, slow, "b")
		wantSaid(t, all[0].listen(t, events.Filter{}, id), "b")
		if s := all[0].feed.Stats(); s.Resets != 3 || s.Kept != 10 || s.Received != 12 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{Listeners: 3, PerCustomer: 2})
		f := all[0].feed
		mine := events.Filter{Customer: "c1"}
		first := all[0].listen(t, mine, "")
		all[0].listen(t, mine, "")
		if _, err := f.Listen(mine, ""); !errors.Is(err, events.ErrTooMany) {
			t.Errorf("a third of a customer: %v", err)
		}
		other := all[0].listen(t, events.Filter{Customer: "c2"}, "")
		if _, err := f.Listen(events.Filter{}, ""); !errors.Is(err, events.ErrTooMany) {
			t.Errorf("a fourth: %v", err)
		}
		first.Close()
		first.Close() // changes nothing
		all[0].listen(t, mine, "")
		if _, err := f.Listen(events.Filter{}, ""); !errors.Is(err, events.ErrTooMany) {
			t.Errorf("a fourth: %v", err)
		}
		other.Close()
		all[0].listen(t, events.Filter{}, "")
		if s := f.Stats(); s.Listeners != 3 || s.Refused != 3 {
			t.Errorf("%+v", s)
		}
		if _, err := events.NewFeed(all[0].log, events.FeedConfig{Listeners: -1}); err == nil {
			t.Error("a negative number of listeners is accepted")
		}
	})
}

// Close ends the listeners, after they have received all events.
func TestCloseEndsListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{})
		f := all[0].feed
		l := all[0].listen(t, events.Filter{}, "")
		wantSaid(t, l, "start")
		all[0].place("a")
		appended()
		f.Close()
		if some, err := l.Next(t.Context()); err != nil || !slices.Equal(said(some), []string{"a"}) {
			t.Errorf("%v, %v", said(some), err)
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, events.ErrClosed) {
			t.Error(err)
		}
		if _, err := f.Listen(events.Filter{}, ""); !errors.Is(err, events.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestForeignEntries are ignored, and break no stream.
func TestForeignEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		foreign := []string{
			`{"type":"order","stock":{"sku":"a"}}`, `{"type":"stock"}`, `{"type":"lock","lock":{"sku":"a"},"order":{"id":"x"}}`,
			"nonsense", `{"type":"future","future":{}}`, `{}`,
		}
		log.write(t, false, foreign...)
		log.write(t, false, "{\"type\":\"order\",\n\r\n\"order\":{\"id\":\"o1\"}}")
		notices := wantSaid(t, l, "start", "o1")
		if strings.ContainsAny(notices[1].Text, "\r\n") {
			t.Errorf("%q", notices[1].Text)
		}
		if s := all[0].feed.Stats(); s.Foreign != uint64(len(foreign)) {
			t.Errorf("%+v", s)
		}
	})
}
