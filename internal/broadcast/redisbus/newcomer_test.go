package redisbus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// A process that has just started learns from the others how far they are, though they have nothing to say, before its
// subscriptions begin: these are told that they are connected, and of no gap. Those of the others are told nothing.
func TestNewcomerIsToldNothing(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		var old []*redisbus.Bus
		var heard []*broadcast.Subscription
		for i := range 4 {
			b := bus(t, client(t, server.URL()), redisbus.Config{Instance: fmt.Sprint("old-", i), Silence: time.Minute})
			start(t, b)
			old, heard = append(old, b), append(heard, subscribe(t, b, "*"))
		}
		say := func(what string) {
			for i, b := range old {
				if err := b.Publish("stock.lamp", fmt.Sprint(what, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		hear := func(s *broadcast.Subscription, what string) {
			t.Helper()
			for range old {
				if e := next(t, s); e.Missed != nil || !strings.HasPrefix(e.Message.Payload, what) {
					t.Errorf("%+v, %+v in place of %s", e.Missed, e.Message, what)
				}
			}
		}
		say("before")
		for _, s := range heard {
			hear(s, "before")
		}
		newcomer := bus(t, client(t, server.URL()), redisbus.Config{Instance: "new", Silence: time.Minute, Settle: 3 * time.Second})
		s, err := newcomer.Subscribe("*")
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan []broadcast.Missed, 1)
		go func() { // reads each notice when it comes: two that wait are one
			var notices []broadcast.Missed
			for messages := 0; messages < len(old); {
				e, err := s.Next(t.Context())
				switch {
				case err != nil:
					t.Error(err)
					messages = len(old)
				case e.Missed != nil:
					notices = append(notices, *e.Missed)
				default:
					messages++
				}
			}
			told <- notices
		}()
		start(t, newcomer)
		say("after")
		for _, s := range heard {
			hear(s, "after")
		}
		if notices := <-told; len(notices) != 1 || notices[0].Reason != broadcast.Connected {
			t.Errorf("the newcomer was told %+v", notices)
		}
	})
}

// What was heard of nobody while a process settled may have been lost: it is told.
func TestUnheardNewcomerIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := client(t, server.URL())
		b := bus(t, rdb, redisbus.Config{Silence: silence})
		start(t, b)
		s := subscribe(t, b, "*")
		if err := rdb.Publish(t.Context(), "shop:broadcast:{all}", "1m other EPOCH 7 stock.lamp x").Err(); err != nil {
			t.Fatal(err)
		}
		if e := next(t, s); e.Missed == nil || e.Missed.Reason != broadcast.Gap || e.Missed.Origin != "other" {
			t.Errorf("%+v, %+v in place of a gap", e.Missed, e.Message)
		}
	})
}
