package events_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

// TestEveryInstanceReceivesEvents what one of them tells.
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

// TestResumeAtAnyInstance comes back after each event, to each instance in turn.
func TestResumeAtAnyInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 3, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		id := wantSaid(t, l, "start")[0].ID
		for n := range 30 {
			all[n%3].place(fmt.Sprint(n, ".0"))
			appended()
			all[(n+1)%3].place(fmt.Sprint(n, ".1"))
			l.Close()
			l = all[n%2].listen(t, events.Filter{}, id)
			id = wantSaid(t, l, fmt.Sprint(n, ".0"), fmt.Sprint(n, ".1"))[1].ID
		}
	})
}

// TestIdleListenerAdvances with its heartbeats, past events that its filter does not choose: it comes back without a reset.
func TestIdleListenerAdvances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 2, events.FeedConfig{Buffer: 10})
		f := events.Filter{Customer: "c2"}
		l := all[0].listen(t, f, "")
		wantSaid(t, l, "start")
		for n := range 100 {
			all[n%2].place(strconv.Itoa(n))
			wantSaid(t, l)
		}
		id := l.ID()
		l.Close()
		wantSaid(t, all[1].listen(t, f, id))
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
		i.Lock("a", "redis", 3)
		synctest.Wait()
		i.Timers("order.expire", "committed", 3)
		for n, l := range listeners {
			wantSaid(t, l, append([]string{"start"}, cases[n].want...)...)
		}
	})
}

// TestMissedEventsResetAllListeners listeners: once the log has lost its data, and once a publisher has dropped something.
func TestMissedEventsResetAllListeners(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, log *shared, i *instance){
		"the log is wiped": func(t *testing.T, log *shared, i *instance) {
			t.Helper()
			i.place("lost")
			log.wipe()
		},
		"the log is wiped and continues": func(t *testing.T, log *shared, _ *instance) {
			t.Helper()
			log.wipe()
			log.write(t, false, `{"type":"order","order":{"id":"first"}}`)
		},
		"a publisher drops": func(t *testing.T, _ *shared, i *instance) {
			t.Helper()
			i.log.away.Store(true)
			for n := range 6000 {
				i.place(strconv.Itoa(n))
			}
			time.Sleep(time.Minute)
			i.log.away.Store(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, all := fleet(t, 2, events.FeedConfig{})
				one, two := all[0].listen(t, events.Filter{}, ""), all[1].listen(t, events.Filter{Customer: "c2"}, "")
				all[0].place("a")
				id := wantSaid(t, one, "start", "a")[1].ID
				wantSaid(t, two, "start")
				lose(t, log, all[0])
				if got := said(hear(t, one)); !slices.Contains(got, "missed") {
					t.Errorf("received %d notices, none that something was missed", len(got))
				}
				wantSaid(t, two, "missed")
				for _, i := range all {
					wantSaid(t, i.listen(t, events.Filter{}, id), "gone")
				}
				all[1].place("b")
				id = wantSaid(t, one, "b")[0].ID
				all[0].place("c")
				wantSaid(t, all[1].listen(t, events.Filter{}, id), "c")
			})
		})
	}
}

// TestDropsAreMarked also if nothing is published after them.
func TestDropsAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{Customer: "c2"}, "")
		wantSaid(t, l, "start")
		all[0].log.away.Store(true)
		for n := range 5000 {
			all[0].place(strconv.Itoa(n))
		}
		all[0].log.away.Store(false)
		wantSaid(t, l, "missed")
		published, dropped := all[0].Stats()
		if s := all[0].feed.Stats(); published != 5000 || dropped == 0 || s.Received != 5000-dropped {
			t.Errorf("published %d, dropped %d, %+v", published, dropped, s)
		}
	})
}

// TestResumeBeforeTheBufferIsAReset: IDs that are too old, of another log, or none at all.
func TestResumeBeforeTheBufferIsAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 2, events.FeedConfig{Buffer: 10})
		l := all[0].listen(t, events.Filter{}, "")
		id := wantSaid(t, l, "start")[0].ID
		var ids []string
		for n := range 11 {
			all[0].place(strconv.Itoa(n))
			ids = append(ids, wantSaid(t, l, strconv.Itoa(n))[0].ID)
		}
		wantSaid(t, all[1].listen(t, events.Filter{}, ids[0]), "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
		part := strings.Split(ids[5], "-")
		changed := func(i, by int) string {
			n, err := strconv.Atoi(part[i])
			if err != nil {
				t.Fatal(err)
			}
			other := slices.Clone(part)
			other[i] = strconv.Itoa(n + by)
			return strings.Join(other, "-")
		}
		for _, bad := range []string{
			id, "x", "-", "--", "0-0-0", "0-0", "0", ids[5] + " ", "+" + ids[5], "0" + ids[5], "a\nb: c", strings.Repeat("1", 1<<16),
			changed(0, -1), changed(2, 1), changed(2, -1),
			changed(0, 1), changed(1, 1000), // these are waited for, but not for ever
		} {
			wantSaid(t, all[1].listen(t, events.Filter{}, bad), "gone")
		}
	})
}

// TestResumeWaits for an instance that has not read as much as the previous one.
func TestResumeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newShared()
		fast := join(t, &testLog{shared: log}, "shop-1", events.FeedConfig{}, events.PublisherConfig{})
		slow := join(t, &testLog{shared: log, turns: make(chan struct{}, 9)}, "shop-2", events.FeedConfig{}, events.PublisherConfig{})
		synctest.Wait()
		l := fast.listen(t, events.Filter{}, "")
		fast.place("a")
		fast.place("b")
		id := wantSaid(t, l, "start", "a", "b")[2].ID
		fast.place("c")
		synctest.Wait()
		late := slow.listen(t, events.Filter{}, id)
		time.AfterFunc(time.Second, func() {
			for range 9 {
				slow.log.turns <- struct{}{}
			}
		})
		wantSaid(t, late, "c")
	})
}

// TestResumeAtANewInstance, which reads what was published before it started.
func TestResumeAtANewInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		all[0].place("a")
		id := wantSaid(t, l, "start", "a")[1].ID
		all[0].place("b")
		appended()
		back := join(t, &testLog{shared: log}, "shop-2", events.FeedConfig{}, events.PublisherConfig{}).listen(t, events.Filter{}, id)
		wantSaid(t, back, "b")
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

// TestCloseEndsListeners that have heard what there was.
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

// TestUnreadEventsAreKept: what was published while nobody listened is decoded for those who come back.
func TestUnreadEventsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		write := func(text string) {
			t.Helper()
			log.write(t, false, text)
			synctest.Wait()
		}
		write(`{"type":"order","order":{"id":"a"}}`)
		notices := wantSaid(t, l, "start", "a")
		l.Close()
		write("nonsense")
		write(`{"type":"order","order":{"id":"b"}}`)
		back := wantSaid(t, all[0].listen(t, events.Filter{}, notices[1].ID), "b")
		write(`{"type":"order","order":{"id":"c"}}`)
		wantSaid(t, all[0].listen(t, events.Filter{}, back[0].ID), "c")
		if s := all[0].feed.Stats(); s.Foreign != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestResumeThroughLosses: three instances read the log at their own pace. Publishers drop events, and the log loses its data.
// A listener goes from one instance to the next with the ID of what it received last, and breaks off in the middle. It
// receives everything exactly once, unless it has to restart.
func TestResumeThroughLosses(t *testing.T) {
	rounds := 3000
	if os.Getenv("SHOP_TEST_SOAK") != "" {
		rounds = 20_000
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) {
			defer func() { // before what the bubble fails with
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			resumeThroughLosses(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		})
		if t.Failed() {
			return
		}
	}
}

func resumeThroughLosses(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	const processes = 3
	log := newShared()
	var all []*instance
	for i := range processes {
		all = append(all, join(t, &testLog{shared: log, turns: make(chan struct{}, 1<<10)}, fmt.Sprint("shop-", i+1), events.FeedConfig{Buffer: 30}, events.PublisherConfig{}))
	}
	synctest.Wait()
	at, id := 0, ""
	l := all[at].listen(t, events.Filter{}, "")
	heard := map[string]int{}
	var published []string
	covered := 0 // of them; the rest came after the last reset
	for range 60 {
		switch rnd.IntN(7) {
		case 0, 1: // something happens, and something before it may have been dropped
			o := fmt.Sprint(len(published))
			lost := rnd.IntN(20) == 0
			if lost {
				published = append(published, "lost "+o)
			}
			published = append(published, o)
			log.write(t, lost, fmt.Sprintf(`{"type":"order","order":{"id":%q}}`, o))
		case 2, 3: // an instance reads
			all[rnd.IntN(processes)].log.turns <- struct{}{}
			synctest.Wait()
		case 4: // the listener receives, and may break off in the middle
			var broke bool
			covered, id, broke = follow(t, l, rnd.IntN(5), heard, published, covered, id)
			if broke {
				l.Close()
				l = all[at].listen(t, events.Filter{}, id)
			}
		case 5: // and goes elsewhere
			l.Close()
			at = rnd.IntN(processes)
			l = all[at].listen(t, events.Filter{}, id)
		case 6:
			if rnd.IntN(5) == 0 {
				log.wipe()
			}
		}
	}
	for _, i := range all {
		for range 100 {
			i.log.turns <- struct{}{}
		}
	}
	synctest.Wait()
	covered, _, _ = follow(t, l, 1<<30, heard, published, covered, id)
	for _, o := range published[covered:] {
		if heard[o] != 1 {
			t.Errorf("%s was received %d times", o, heard[o])
		}
	}
	l.Close()
}

// follow hears up to so many notices, and keeps the id of the last one. After a reset everything that was published before counts as read.
func follow(t *testing.T, l *events.Listener, most int, heard map[string]int, published []string, covered int, id string) (nowCovered int, lastID string, broke bool) {
	t.Helper()
	for _, n := range hear(t, l) {
		if most--; most < 0 {
			return covered, id, true // what is behind is lost on the way
		}
		id = n.ID
		if n.Reset != "" {
			covered = len(published)
			clear(heard)
			continue
		}
		heard[n.Event.Order.ID]++
		if heard[n.Event.Order.ID] > 1 {
			t.Errorf("%s was heard twice", n.Event.Order.ID)
		}
	}
	return covered, id, false
}
