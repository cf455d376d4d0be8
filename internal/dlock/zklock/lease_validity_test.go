package zklock_test

import (
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// The servers may shorten a session, and report that on connection, which may be after the Locker was made. A holder
// that is cut off stops before they end the session.
func TestShorterSessionHasAShorterValidity(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{Settings: []string{"maxSessionTimeout=3000"}})
		proxy := testbedtest.StartProxy(t, server.Addr())
		s, err := zookeeper.Open(t.Context(), zookeeper.Config{Servers: []string{proxy.Addr()}, Timeout: 9 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		testbedtest.Closing(t, s.Close)
		l, next := locker(t, s, zklock.Config{}), locker(t, session(t, server.Addr()), zklock.Config{})
		lease := acquire(t, l, "k")
		if d := s.Timeout(); d != ttl {
			t.Fatalf("the session has %v, so the test proves nothing", d)
		}
		granted := s.Confirmed()
		for end := time.Now().Add(20 * ttl); !s.Confirmed().After(granted) && lease.Err() == nil; { // renewed
			if time.Now().After(end) {
				t.Fatal("the lease is not renewed")
			}
			<-time.After(ttl / 100)
		}
		proxy.BlackHole()
		second := acquire(t, next, "k")
		select {
		case <-lease.Done():
		default:
			testbedtest.Final(t, "granted to another, and the holder does not know")
		}
		if err := proxy.Pass(); err != nil {
			t.Error(err)
		}
		release(t, second)
	})
}

// The servers give a session more time than was asked for: the shortest that they allow, which is two ticks. A follower
// may be half a tick behind with what it says of a session, so a holder that is cut off stops earlier.
func TestRaisedSessionHasAShorterValidity(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const tick = 2 * time.Second
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{Tick: tick})
		proxy := testbedtest.StartProxy(t, server.Addr())
		s := session(t, proxy.Addr()) // asks for less
		lease := acquire(t, locker(t, s, zklock.Config{}), "k")
		if d := s.Timeout(); d != 2*tick {
			t.Fatalf("the session has %v, so the test proves nothing", d)
		}
		proxy.BlackHole()
		<-lease.Done()
		if d, most := time.Since(s.Confirmed()), s.Timeout()-s.Timeout()/3-tick/2; d > most {
			t.Errorf("a lease was relied on for %v, want less than %v", d, most)
		}
		if err := proxy.Pass(); err != nil {
			t.Error(err)
		}
	})
}

func release(t testing.TB, lease *dlock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
