package events_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

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
