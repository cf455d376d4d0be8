package events_test

import (
	"context"
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

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/events"
)

// TestEveryInstanceHears what one of them tells.
func TestEveryInstanceHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 3, events.FeedConfig{})
		var listeners []*events.Listener
		for _, i := range all {
			listeners = append(listeners, i.listen(t, events.Filter{}, ""))
		}
		all[0].place("a")
		all[1].Leader(events.Leader{Name: "shop-2", Term: 7})
		all[2].place("b")
		for _, l := range listeners {
			notices := wantSaid(t, l, "start", "a", "leader", "b")
			if e := notices[1].Event; e.Instance != "shop-1" || !strings.HasPrefix(notices[1].ID, "shop-1:") || !strings.Contains(notices[1].Text, `"customer_id":"c1"`) {
				t.Errorf("%+v", notices[1])
			}
		}
	})
}

// TestResumeAtAnyInstance comes back after each event, to each instance in turn.
func TestResumeAtAnyInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 3, events.FeedConfig{})
		time.Sleep(time.Minute) // until each knows the others: who has just started may say "gone" for nothing
		l := all[0].listen(t, events.Filter{}, "")
		id := wantSaid(t, l, "start")[0].ID
		for n := range 30 {
			all[n%3].place(fmt.Sprint(n, ".0"))
			all[(n+1)%3].place(fmt.Sprint(n, ".1"))
			l.Close()
			l = all[n%2].listen(t, events.Filter{}, id)
			id = wantSaid(t, l, fmt.Sprint(n, ".0"), fmt.Sprint(n, ".1"))[1].ID
		}
	})
}

// TestQuietListenerMovesOn with its heartbeats, past events that its filter does not choose: it comes back without a reset.
func TestQuietListenerMovesOn(t *testing.T) {
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

// TestMissedIsToldToAll listeners, once the bus has lost something, and what came before is not to be had any more.
func TestMissedIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, all := fleet(t, 2, events.FeedConfig{})
		one, two := all[0].listen(t, events.Filter{}, ""), all[1].listen(t, events.Filter{Customer: "c2"}, "")
		all[0].place("a")
		id := wantSaid(t, one, "start", "a")[1].ID
		wantSaid(t, two, "start")
		hub.Interrupt(func() { all[0].place("lost") })
		wantSaid(t, one, "missed")
		wantSaid(t, two, "missed")
		for _, i := range all {
			wantSaid(t, i.listen(t, events.Filter{}, id), "gone")
		}
		all[1].place("b")
		id = wantSaid(t, one, "b")[0].ID
		all[0].place("c")
		wantSaid(t, all[1].listen(t, events.Filter{}, id), "c")
	})
}

// TestWhatIsNotKeptIsGone: ids that are too old, of instances that nobody knows, or none at all.
func TestWhatIsNotKeptIsGone(t *testing.T) {
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
		for _, bad := range []string{
			id, "x", "-", "shop-1:" + ids[5], "shop-9:EPOCH:1", ids[5] + " shop-9:EPOCH:1", ids[5] + " " + ids[5], ids[5] + " ", "a\nb: c",
			strings.Replace(ids[5], "shop-1", "shop-3", 1), strings.Repeat("x", 1<<16),
		} {
			wantSaid(t, all[1].listen(t, events.Filter{}, bad), "gone")
		}
		// One that has heard more than anybody here, as nobody can have: it is waited for, but not for ever.
		at := strings.Fields(ids[10])[0]
		wantSaid(t, all[1].listen(t, events.Filter{}, strings.Replace(ids[10], at, at[:strings.LastIndex(at, ":")]+":999", 1)), "gone")
	})
}

// TestResumeWaits for an instance that has not heard what the one before had.
func TestResumeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires, all := wired(t, 2, events.FeedConfig{})
		origin, _ := broadcast.NewOrigin("shop-1")
		var messages []broadcast.Message
		for _, id := range []string{"a", "b", "c"} {
			messages = append(messages, numbered(t, origin, id))
		}
		l := all[0].listen(t, events.Filter{}, "")
		wires[0].Deliver(messages[0])
		wires[0].Deliver(messages[1])
		wires[1].Deliver(messages[0])
		id := wantSaid(t, l, "start", "a", "b")[2].ID
		late := all[1].listen(t, events.Filter{}, id)
		time.AfterFunc(time.Second, func() {
			wires[1].Deliver(messages[1]) // which it has heard elsewhere
			wires[1].Deliver(messages[2])
		})
		wantSaid(t, late, "c")
	})
}

// TestSlowListenerStartsAnew, and costs nobody else anything.
func TestSlowListenerStartsAnew(t *testing.T) {
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
		if s := all[0].feed.Stats(); s.Resets != 3 || s.Kept != 10 || s.Heard != 12 {
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
		if _, err := events.NewFeed(all[0].bus, events.FeedConfig{Listeners: -1}); err == nil {
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
		synctest.Wait()
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

// TestForeignMessages on the topics of events are ignored, and break no stream.
func TestForeignMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		for topic, payload := range map[string]string{
			"events.order":  `{"type":"stock","stock":{"sku":"a"}}`,
			"events.stock":  `{"type":"stock"}`,
			"events.lock":   `{"type":"lock","lock":{"sku":"a"},"order":{"id":"x"}}`,
			"events.timer":  "nonsense",
			"events.member": "",
			"events.future": `{"type":"future","future":{}}`,
			"stock":         `{"type":"stock","stock":{"sku":"a"}}`,
		} {
			if err := all[0].bus.Publish(topic, payload); err != nil {
				t.Fatal(err)
			}
		}
		if err := all[0].bus.Publish("events.order", "{\"type\":\"order\",\n\r\n\"order\":{\"id\":\"o1\"}}"); err != nil {
			t.Fatal(err)
		}
		notices := wantSaid(t, l, "start", "o1")
		if strings.ContainsAny(notices[1].Text, "\r\n") {
			t.Errorf("%q", notices[1].Text)
		}
		if s := all[0].feed.Stats(); s.Foreign != 6 {
			t.Errorf("%+v", s)
		}
	})
}

// TestKeptUnread: what came while nobody listened is read for those who come back.
func TestKeptUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		publish := func(payload string) {
			t.Helper()
			if err := all[0].bus.Publish("events.order", payload); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		publish(`{"type":"order","order":{"id":"a"}}`)
		notices := wantSaid(t, l, "start", "a")
		l.Close()
		publish("nonsense")
		publish(`{"type":"order","order":{"id":"b"}}`)
		back := wantSaid(t, all[0].listen(t, events.Filter{}, notices[1].ID), "b")
		publish(`{"type":"order","order":{"id":"c"}}`)
		wantSaid(t, all[0].listen(t, events.Filter{}, back[0].ID), "c")
		if s := all[0].feed.Stats(); s.Foreign != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestResumeInAnyOrder: instances hear the same in different orders, and lose some of it. Listeners go from one to the next
// with what they heard last, breaking off in the middle. Each hears everything exactly once, unless it is told.
func TestResumeInAnyOrder(t *testing.T) {
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
			resumeInAnyOrder(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		})
		if t.Failed() {
			return
		}
	}
}

// wire is a process that hears what it is handed.
type wire struct {
	*broadcast.Fanout

	queues [][]broadcast.Message // by origin, not handed on yet
	told   atomic.Int64          // messages that it has published, which nobody hears
}

func (w *wire) Publish(string, string) error  { w.told.Add(1); return nil }
func (w *wire) Stats() broadcast.Stats        { return w.Fanout.Stats() }
func (w *wire) Run(ctx context.Context) error { <-ctx.Done(); w.Close(); return nil }

// wired starts so many instances, in a bubble, that hear only what they are handed.
func wired(t *testing.T, n int, c events.FeedConfig) (wires []*wire, all []*instance) {
	t.Helper()
	for i := range n {
		fan, err := broadcast.NewFanout(0)
		if err != nil {
			t.Fatal(err)
		}
		wires = append(wires, &wire{Fanout: fan, queues: make([][]broadcast.Message, n)})
		all = append(all, join(t, wires[i], fmt.Sprint("shop-", i+1), c, events.PublisherConfig{}))
		fan.Up()
	}
	synctest.Wait()
	return wires, all
}

// numbered returns the message that an order has changed.
func numbered(t *testing.T, from *broadcast.Origin, order string) broadcast.Message {
	t.Helper()
	m, err := from.Number("events.order", fmt.Sprintf(`{"type":"order","order":{"id":%q}}`, order))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tickOf returns the message that tells how far an origin is.
func tickOf(t *testing.T, from *broadcast.Origin) broadcast.Message {
	t.Helper()
	m, err := from.Number("events.tick", "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// trio is three origins that two instances hear.
type trio struct {
	wires   []*wire
	all     []*instance
	origins [3]*broadcast.Origin
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	x := &trio{}
	x.wires, x.all = wired(t, 2, events.FeedConfig{})
	for i := range x.origins {
		x.origins[i], _ = broadcast.NewOrigin(fmt.Sprint("shop-", i+1))
	}
	return x
}

// both lets both instances hear a message.
func (x *trio) both(m broadcast.Message) {
	for _, w := range x.wires {
		w.Deliver(m)
	}
	synctest.Wait()
}

// interrupt cuts an instance off for a moment. The first two origins tell where they are behind that.
func (x *trio) interrupt(t *testing.T, i int) {
	t.Helper()
	x.wires[i].Down()
	x.wires[i].Up()
	for _, o := range x.origins[:2] {
		x.both(tickOf(t, o))
	}
}

// TestForgottenByAMiss: who lacks an event of an origin that has gone is told, also by an instance that heard it and
// forgot it since, as it missed something.
func TestForgottenByAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		l := x.all[0].listen(t, events.Filter{}, "")
		wantSaid(t, l, "start")
		for _, o := range x.origins {
			x.both(tickOf(t, o))
		}
		x.interrupt(t, 0)
		wantSaid(t, l, "missed")
		x.both(numbered(t, x.origins[2], "lost"))
		x.interrupt(t, 1)
		wantSaid(t, x.all[1].listen(t, events.Filter{}, l.ID()), "gone")
	})
}

// TestOfNobodyItKnows: an event was lost of an origin that neither the listener nor the instance has heard of.
func TestOfNobodyItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		l := x.all[0].listen(t, events.Filter{}, "")
		id := wantSaid(t, l, "start")[0].ID
		x.both(tickOf(t, x.origins[0]))
		wantSaid(t, l)
		x.wires[1].Down() // shop-3 says one thing, and dies
		x.wires[1].Up()
		x.wires[1].Deliver(tickOf(t, x.origins[0]))
		synctest.Wait()
		for _, id := range []string{id, l.ID()} {
			wantSaid(t, x.all[1].listen(t, events.Filter{}, id), "gone")
		}
	})
}

// TestOfNobodyItKnew: the origin of what was lost appears after somebody has come back.
func TestOfNobodyItKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		l := x.all[0].listen(t, events.Filter{}, "")
		wantSaid(t, l, "start")
		x.interrupt(t, 1)
		numbered(t, x.origins[2], "lost")
		wantSaid(t, l)
		back := x.all[1].listen(t, events.Filter{}, l.ID())
		wantSaid(t, back)
		x.both(tickOf(t, x.origins[2]))
		wantSaid(t, back, "gone")
	})
}

// TestNothingFromBeforeAReset is heard after it, of an origin that has gone and that the instance of the reset has not heard since.
func TestNothingFromBeforeAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		l := x.all[0].listen(t, events.Filter{}, "")
		x.both(tickOf(t, x.origins[0]))
		x.both(tickOf(t, x.origins[1]))
		x.both(numbered(t, x.origins[2], "old1"))
		x.both(numbered(t, x.origins[2], "old2"))
		wantSaid(t, l, "start", "old1", "old2")
		x.interrupt(t, 0)
		id := wantSaid(t, l, "missed")[0].ID
		for _, id := range []string{id, l.ID()} {
			wantSaid(t, x.all[1].listen(t, events.Filter{}, id))
		}
	})
}

// TestSilentOriginNobodyNamed: an instance that began after an origin had gone does not name it, and what it said is not
// replayed to whoever has begun there.
func TestSilentOriginNobodyNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		x.wires[1].Deliver(numbered(t, x.origins[2], "old"))
		time.Sleep(time.Minute)
		x.both(tickOf(t, x.origins[0]))
		l := x.all[0].listen(t, events.Filter{}, "")
		id := wantSaid(t, l, "start")[0].ID
		wantSaid(t, x.all[1].listen(t, events.Filter{}, id), "gone")
	})
}

func resumeInAnyOrder(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	const processes = 3
	wires, all := wired(t, processes, events.FeedConfig{Buffer: 30})
	origins := make([]*broadcast.Origin, processes)
	for i := range origins {
		origins[i], _ = broadcast.NewOrigin(fmt.Sprint("shop-", i+1))
	}
	at, id := 0, ""
	l := all[at].listen(t, events.Filter{}, "")
	heard := map[string]int{}
	var published []string
	covered := 0 // of them; the rest came after the last reset
	for range 60 {
		switch rnd.IntN(7) {
		case 6: // somebody tells how far it is
			from := rnd.IntN(processes)
			m := tickOf(t, origins[from])
			for _, w := range wires {
				w.queues[from] = append(w.queues[from], m)
			}
		case 0, 1: // something happens
			from := rnd.IntN(processes)
			o := fmt.Sprint(len(published))
			m := numbered(t, origins[from], o)
			published = append(published, o)
			for _, w := range wires {
				w.queues[from] = append(w.queues[from], m)
			}
		case 2, 3: // some of it arrives somewhere
			w := wires[rnd.IntN(processes)]
			from := rnd.IntN(processes)
			if len(w.queues[from]) > 0 {
				if rnd.IntN(10) == 0 { // or not
					w.Miss(broadcast.Missed{Reason: broadcast.Gap, Origin: fmt.Sprint("shop-", from+1), Count: 1})
				} else {
					w.Deliver(w.queues[from][0])
				}
				w.queues[from] = w.queues[from][1:]
			}
			synctest.Wait()
		case 4: // the listener hears, and may break off in the middle
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
		}
	}
	for _, w := range wires {
		for _, q := range w.queues {
			for _, m := range q {
				w.Deliver(m)
			}
		}
		clear(w.queues)
	}
	for _, o := range origins { // they live
		m := tickOf(t, o)
		for _, w := range wires {
			w.Deliver(m)
		}
	}
	synctest.Wait()
	covered, _, _ = follow(t, l, 1<<30, heard, published, covered, id)
	for _, o := range published[covered:] {
		if heard[o] != 1 {
			t.Errorf("%s was heard %d times", o, heard[o])
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
