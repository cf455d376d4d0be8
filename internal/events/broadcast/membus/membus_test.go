package membus_test

import (
	"testing"

	"example.com/shop/internal/events/broadcast"
	"example.com/shop/internal/events/broadcast/broadcasttest"
	"example.com/shop/internal/events/broadcast/membus"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	broadcasttest.Run(t, broadcasttest.Harness{Open: func(_ testing.TB, n int) (buses []broadcast.Bus) {
		one := new(membus.Bus)
		for range n {
			buses = append(buses, one)
		}
		return buses
	}})
}

// A subscriber that is slow misses messages, and the bus holds a bounded number for it.
func TestSlowSubscriberMissesMessages(t *testing.T) {
	t.Parallel()
	bus, events := new(membus.Bus), 0
	for e := range bus.Subscribe(t.Context(), "topic") {
		if events++; !e.Missed {
			t.Fatalf("received %q of the messages that did not fit", e.Payload)
		}
		if events == 2 {
			break
		}
		for range 100_000 {
			if err := bus.Publish(t.Context(), "topic", "message"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
