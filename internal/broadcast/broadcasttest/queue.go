package broadcasttest

import (
	"strconv"
	"testing"

	"example.com/shop/internal/broadcast"
)

// room is the queue of the cases of this file, in events.
const room = 8

// slowIsToldHowMany lets a subscription fall behind: it has the oldest messages, is told
// in their place how many it missed of its own topics, and hears what comes then.
func slowIsToldHowMany(t testing.TB, h Harness) {
	r := open(t, h, 2, room)
	slow, fast := r.subscribe(0, "t"), r.subscribe(0, "*")
	for i := 1; i <= 100; i++ {
		r.publish(1, "t", strconv.Itoa(i))
		r.publish(1, "other", strconv.Itoa(i))
		fast.expect(strconv.Itoa(i), strconv.Itoa(i))
	}
	r.arrived(200)
	if n := slow.Len(); n != room+1 {
		t.Errorf("%d events are queued, want %d and a notice", n, room)
	}
	slow.expect(series(1, room)...)
	if m := slow.missed(); m != (broadcast.Missed{Reason: broadcast.Overflow, Count: 100 - room}) {
		t.Errorf("%+v, want %d messages missed", m, 100-room)
	}
	r.publish(1, "t", "next")
	slow.expect("next")
	fast.expect("next")
	if s := r.buses[0].Stats(); s.Overflowed != 100-room || r.buses[1].Stats().Overflowed != 0 {
		t.Errorf("Overflowed = %d, want %d", s.Overflowed, 100-room)
	}
}

// slowHearsAgain lets a subscription read one event and fall behind again: until it has
// read all that it had, it misses one span and not many.
func slowHearsAgain(t testing.TB, h Harness) {
	r := open(t, h, 1, room)
	slow := r.subscribe(0, "t")
	n := 0
	say := func(times int) {
		for range times {
			n++
			r.publish(0, "t", strconv.Itoa(n))
		}
		r.arrived(n)
	}
	say(room + 1) // one too many
	slow.expect("1")
	say(1) // there is room, and a notice before it
	slow.expect(series(2, room)...)
	say(1)
	if m := slow.missed(); m != (broadcast.Missed{Reason: broadcast.Overflow, Count: 3}) {
		t.Errorf("%+v, want 3 messages missed", m)
	}
	for range 5 {
		say(room)
		slow.expect(series(n-room+1, n)...)
	}
	if slow.Len() != 0 {
		t.Errorf("%d events are left", slow.Len())
	}
}

// slowHarmsNobody has many that never read beside one that does.
func slowHarmsNobody(t testing.TB, h Harness) {
	r := open(t, h, 2, room)
	var deaf []reader
	for i := range 100 {
		deaf = append(deaf, r.subscribe(i%2, "*"))
	}
	first, second := r.subscribe(0, "t"), r.subscribe(1, "t")
	for i := range 1000 {
		r.publish(i%2, "t", strconv.Itoa(i))
		first.expect(strconv.Itoa(i))
		second.expect(strconv.Itoa(i))
	}
	for _, rd := range deaf {
		if rd.Len() != room+1 {
			t.Errorf("%d events are queued, want %d and a notice", rd.Len(), room)
		}
	}
}

// readyAgreesWithNext reads by the channel alone.
func readyAgreesWithNext(t testing.TB, h Harness) {
	r := open(t, h, 1, room)
	rd, total := r.subscribe(0, "t"), 0
	for n := 1; n <= room+2; n++ {
		for i := range n {
			r.publish(0, "t", strconv.Itoa(i))
		}
		total += n
		r.arrived(total)
		for range min(n, room+1) {
			select {
			case <-rd.Ready():
			default:
				t.Fatalf("not ready, with %d events to read", rd.Len())
			}
			rd.event()
		}
		select {
		case <-rd.Ready():
			t.Fatal("ready without an event")
		default:
		}
	}
	rd.Close()
	select {
	case <-rd.Ready():
	default:
		t.Error("not ready for the end")
	}
}
