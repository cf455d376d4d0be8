package redisbus_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed/testbedtest"
)

// scripted is a server that says what a test wants it to say to those who listen.
type scripted struct {
	addr string

	mu        sync.Mutex
	listeners []*server.Peer
	mute      bool // does not answer to PING
}

func startScripted(t testing.TB) *scripted {
	t.Helper()
	srv, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	s := &scripted{addr: srv.Addr().String()}
	for name, answer := range map[string]server.Cmd{
		"CLIENT": func(c *server.Peer, _ string, _ []string) { c.WriteOK() },
		"SUBSCRIBE": func(c *server.Peer, _ string, args []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.listeners = append(s.listeners, c)
			push(c, "subscribe", args[0])
		},
		"PUBLISH": func(c *server.Peer, _ string, args []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, l := range s.listeners {
				l.Block(func(w *server.Writer) {
					w.WriteStrings([]string{"message", args[0], args[1]})
					w.Flush()
				})
			}
			c.WriteInt(1)
		},
		"PING": func(c *server.Peer, _ string, _ []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.mute {
				c.WriteStrings([]string{"pong", ""})
			}
		},
	} {
		if err := srv.Register(name, answer); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// push confirms a subscription.
func push(c *server.Peer, kind, channel string) {
	c.Block(func(w *server.Writer) {
		w.WriteLen(3)
		w.WriteBulk(kind)
		w.WriteBulk(channel)
		w.WriteInt(1)
		w.Flush()
	})
}

// confirm says to all listeners that they have subscribed, or not any more.
func (s *scripted) confirm(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		push(l, kind, "shop:broadcast:{all}")
	}
}

// If the client comes to another connection behind our back, as it does when a server
// announces its maintenance, the subscription is confirmed a second time.
func TestSecondConfirmationIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		srv := startScripted(t)
		b := bus(t, client(t, "redis://"+srv.addr), redisbus.Config{})
		start(t, b)
		s := subscribe(t, b, "*")
		srv.confirm("subscribe")
		if m := awaitMissed(t, s, broadcast.Connected); m.Count != 0 {
			t.Errorf("%+v", m)
		}
		awaitMessage(t, s, b)
		if n := b.Stats().Losses; n != 1 {
			t.Errorf("%d losses, want 1", n)
		}
	})
}

// A server that ends the subscription and keeps the connection is left.
func TestEndOfTheSubscriptionIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		srv := startScripted(t)
		b := bus(t, client(t, "redis://"+srv.addr), redisbus.Config{})
		start(t, b)
		for _, kind := range []string{"unsubscribe", "sunsubscribe"} {
			s := subscribe(t, b, "*")
			srv.confirm(kind)
			awaitMissed(t, s, broadcast.Connected)
			eventually(t, "a new connection alone after "+kind, func() bool { // the server may hear late of the end of the old one
				srv.mu.Lock()
				defer srv.mu.Unlock()
				srv.listeners = slices.DeleteFunc(srv.listeners, (*server.Peer).Closed)
				return len(srv.listeners) == 1
			})
			awaitMessage(t, s, b)
		}
	})
}

// A server that still takes what is sent, and sends nothing more, is silent.
func TestSilentServerIsTold(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		srv := startScripted(t)
		b := bus(t, client(t, "redis://"+srv.addr), redisbus.Config{Silence: silence})
		start(t, b)
		s := subscribe(t, b, "*")
		srv.mu.Lock()
		srv.mute, srv.listeners = true, nil
		srv.mu.Unlock()
		awaitMissed(t, s, broadcast.Disconnected)
		awaitMissed(t, s, broadcast.Connected)
	})
}
