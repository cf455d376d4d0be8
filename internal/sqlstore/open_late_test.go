package sqlstore_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"

	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/testbed/testbedtest"
)

// A server that has not answered the first question in time, as on a machine that stood still, is asked again.
func TestOpenAsksAgain(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(testbedtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	server := database.Host
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for n := 0; ; n++ {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { near.Close() })
			if n == 0 {
				continue // and never hears anything
			}
			far, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { far.Close() })
			go func() { _, _ = io.Copy(near, far) }()
			go func() { _, _ = io.Copy(far, near) }()
		}
	}()
	database.Host = listener.Addr().String()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database.String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
