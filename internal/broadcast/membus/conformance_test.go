package membus_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/broadcasttest"
	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestBus(t *testing.T) {
	t.Parallel()
	var hubs sync.Map // by bus
	broadcasttest.Run(t, broadcasttest.Harness{
		Open: func(t testing.TB, n, queue int) (buses []broadcast.Bus) {
			t.Helper()
			hub := &membus.Hub{}
			for i := range n {
				b, err := membus.New(hub, membus.Config{Instance: "bus-" + strconv.Itoa(i), Queue: queue})
				if err != nil {
					t.Fatal(err)
				}
				hubs.Store(b, hub)
				buses = append(buses, b)
			}
			return buses
		},
		Interrupt: func(t testing.TB, b broadcast.Bus) {
			t.Helper()
			hub, _ := hubs.Load(b)
			h, ok := hub.(*membus.Hub)
			if !ok {
				t.Fatal("a bus of another harness")
			}
			h.Interrupt(func() { time.Sleep(5 * time.Millisecond) })
		},
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		for _, cfg := range []membus.Config{{Queue: -1}, {Instance: "a b"}, {Instance: "ä"}} {
			if _, err := membus.New(nil, cfg); !errors.Is(err, broadcast.ErrInvalid) {
				t.Errorf("%+v: New = %v, want ErrInvalid", cfg, err)
			}
		}
	})
}

// A bus is of use to tests on fake time: who waits for an event blocks durably, and what
// was published has been delivered.
func TestOnFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &membus.Hub{}
		bus, err := membus.New(hub, membus.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go bus.Run(ctx)
		s, err := bus.Subscribe("*")
		if err != nil {
			t.Fatal(err)
		}
		read := func() (e broadcast.Event) {
			e, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		read()
		start := time.Now()
		time.AfterFunc(time.Hour, func() { bus.Publish("t", "x") })
		if e := read(); e.Message.Payload != "x" || time.Since(start) != time.Hour {
			t.Errorf("got %+v after %v", e, time.Since(start))
		}
		hub.Interrupt(func() {
			bus.Publish("t", "lost")
			if e := read(); e.Missed == nil || e.Missed.Reason != broadcast.Disconnected {
				t.Errorf("got %+v in an interruption", e)
			}
		})
		if e := read(); e.Missed == nil || e.Missed.Reason != broadcast.Connected || s.Len() != 0 {
			t.Errorf("got %+v and %d more after an interruption", e, s.Len())
		}
		cancel()
		synctest.Wait()
		if _, err := s.Next(t.Context()); !errors.Is(err, broadcast.ErrClosed) {
			t.Errorf("Next = %v, want ErrClosed", err)
		}
	})
}
