package events_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/events"
)

// crowd is many origins that some instances hear.
type crowd struct {
	wires   []*wire
	origins []*broadcast.Origin
}

func newCrowd(wires []*wire, n int) crowd {
	c := crowd{wires, make([]*broadcast.Origin, n)}
	for i := range c.origins {
		c.origins[i], _ = broadcast.NewOrigin(fmt.Sprint("shop-", i))
	}
	return c
}

// speak has the first n tell of an order each, one after the other, and returns the ids.
func (c crowd) speak(t *testing.T, n int, id string) (ids []string) {
	t.Helper()
	for i, o := range c.origins[:n] {
		ids = append(ids, fmt.Sprint(id, ".", i))
		m := numbered(t, o, ids[i])
		for _, w := range c.wires {
			w.Deliver(m)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ids
}

// told returns how often the instances have told how far they are.
func (c crowd) told() (sum int64) {
	for _, w := range c.wires {
		sum += w.told.Load()
	}
	return sum
}

// TestHundredInstances tell one another no more often than three how far they are, and who goes from one to
// another hears each event once, without a reset.
func TestHundredInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		wires, all := wired(t, 3, events.FeedConfig{})
		c := newCrowd(wires, n)
		l := all[0].listen(t, events.Filter{}, "")
		wantSaid(t, l, "start")
		var last string
		var before int64
		for round := range 10 {
			want := c.speak(t, n, fmt.Sprint(round))
			if round > 0 { // those of the first round are new to this one, too
				l = all[round%3].listen(t, events.Filter{}, last)
			}
			notices := wantSaid(t, l, want...)
			last = notices[len(notices)-1].ID
			l.Close()
			if round == 0 {
				before = c.told()
			}
		}
		if told := c.told() - before; told > 3*15 { // every five seconds, in a minute
			t.Errorf("three instances have told %d times how far they are", told)
		}
		if len(last) > 8<<10 {
			t.Errorf("an id has %d bytes", len(last))
		}
	})
}

// TestCrowd: where more instances speak than ids can name, nobody makes others tell how far they are again and again, who comes
// back starts anew and hears nothing twice, and all is as before when the crowd has gone.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, buffer = 300, 1000
		wires, all := wired(t, 2, events.FeedConfig{Buffer: buffer})
		c := newCrowd(wires, many)
		l := all[0].listen(t, events.Filter{}, "")
		wantSaid(t, l, "start")
		early := wantSaid(t, l, c.speak(t, 1, "first")...)[0].ID // which names all that there are
		var last string
		var before int64
		for round := range 3 {
			notices := wantSaid(t, l, c.speak(t, many, fmt.Sprint(round))...)
			last = notices[len(notices)-1].ID
			if round == 0 {
				before = c.told()
			}
		}
		if told := c.told() - before; told > 2*5 { // every five seconds, in 16
			t.Errorf("two instances have told %d times how far they are", told)
		}
		var back []*events.Listener
		for _, i := range all {
			back = append(back, i.listen(t, events.Filter{}, early), i.listen(t, events.Filter{}, last))
		}
		for _, l := range back {
			wantSaid(t, l, "gone")
		}
		if last != "-" {
			t.Errorf("in a crowd an id says %.100q", last)
		}

		time.Sleep(time.Minute)
		const some = 10
		for n := range buffer / some {
			wantSaid(t, l, c.speak(t, some, fmt.Sprint("after.", n))...)
		}
		last = l.ID()
		want := c.speak(t, some, "resumed")
		wantSaid(t, l, want...)
		for _, i := range all {
			wantSaid(t, i.listen(t, events.Filter{}, last), want...)
		}
	})
}

// TestSilentOriginMakesRoom though its event is kept: who has heard that does not hear it again.
func TestSilentOriginMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires, all := wired(t, 1, events.FeedConfig{})
		l := all[0].listen(t, events.Filter{}, "")
		wantSaid(t, l, append([]string{"start"}, newCrowd(wires, 1).speak(t, 1, "old")...)...)
		time.Sleep(2 * time.Minute)
		c := newCrowd(wires, 256)
		wantSaid(t, l, c.speak(t, 256, "new")...)
		if id := l.ID(); id == "-" {
			t.Error("there is no crowd")
		}
		wantSaid(t, all[0].listen(t, events.Filter{}, l.ID()), "gone")
	})
}
