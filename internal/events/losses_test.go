package events_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

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
				if got := said(receive(t, one)); !slices.Contains(got, "missed") {
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
	for _, appending := range []bool{false, true} { // when they are dropped
		synctest.Test(t, func(t *testing.T) {
			_, all := fleet(t, 1, events.FeedConfig{})
			l := all[0].listen(t, events.Filter{Customer: "c2"}, "")
			wantSaid(t, l, "start")
			all[0].log.away.Store(true)
			want := uint64(5000)
			if appending {
				all[0].place("first")
				time.Sleep(time.Second)
				want++
			}
			for n := range 5000 {
				all[0].place(strconv.Itoa(n))
			}
			all[0].log.away.Store(false)
			wantSaid(t, l, "missed")
			published, dropped := all[0].Stats()
			if s := all[0].feed.Stats(); published != want || dropped == 0 || s.Received != want-dropped {
				t.Errorf("published %d, dropped %d, %+v", published, dropped, s)
			}
		})
	}
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
	received := map[string]int{}
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
			covered, id, broke = follow(t, l, rnd.IntN(5), received, published, covered, id)
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
	covered, _, _ = follow(t, l, 1<<30, received, published, covered, id)
	for _, o := range published[covered:] {
		if received[o] != 1 {
			t.Errorf("%s was received %d times", o, received[o])
		}
	}
	l.Close()
}

// follow receives at most most notices, and keeps the id of the last one. After a reset everything that was published
// before counts as read.
func follow(t *testing.T, l *events.Listener, most int, received map[string]int, published []string, covered int, id string) (nowCovered int, lastID string, broke bool) {
	t.Helper()
	for _, n := range receive(t, l) {
		if most--; most < 0 {
			return covered, id, true // what is behind is lost on the way
		}
		id = n.ID
		if n.Reset != "" {
			covered = len(published)
			clear(received)
			continue
		}
		received[n.Event.Order.ID]++
		if received[n.Event.Order.ID] > 1 {
			t.Errorf("%s was received twice", n.Event.Order.ID)
		}
	}
	return covered, id, false
}
