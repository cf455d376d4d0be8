package testbedtest

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"
)

// Relay returns the URL of a server behind a relay, which calls before with whatever a client has sent, and passes it on then.
func Relay(t testing.TB, rawURL string, before func(sent []byte)) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	upstream := u.Host
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	ctx := context.WithoutCancel(t.Context())
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(ctx, "tcp", upstream)
			if err != nil {
				near.Close()
				continue
			}
			go func() {
				defer near.Close()
				_, _ = io.Copy(near, far)
			}()
			go func() {
				defer far.Close()
				buffer := make([]byte, 64<<10)
				for {
					n, err := near.Read(buffer)
					if n > 0 {
						before(buffer[:n])
					}
					if _, failed := far.Write(buffer[:n]); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}
