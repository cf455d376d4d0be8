package etcdlock

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// patience is how long a connection may serve nothing before a request that fails closes it. Callers that leave wait for less.
const patience = 600 * time.Millisecond

// open are the connections of clients of [NewClient], by their addresses.
var open sync.Map

// connection leads to a member. A member that has lost its quorum keeps its connections and answers pings. So its clients would
// stay with it, though their address leads to another member now.
type connection struct {
	net.Conn

	served atomic.Pointer[time.Time] // when a request was served, or the connection opened
}

// dial opens a connection to the member at address.
func dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c, now := &connection{Conn: conn}, time.Now()
	c.served.Store(&now)
	open.Store(ends(conn.LocalAddr(), conn.RemoteAddr()), c)
	return c, nil
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	open.CompareAndDelete(ends(c.LocalAddr(), c.RemoteAddr()), c)
	return c.Conn.Close()
}

func ends(local, remote net.Addr) string { return local.String() + " " + remote.String() }

// judge closes the connection to p if err says that no member serves there, and none has for a while, nor since the
// request was sent. A request that got no answer must have waited for as long.
func judge(p *peer.Peer, sent time.Time, err error) {
	if p.LocalAddr == nil {
		return
	}
	found, _ := open.Load(ends(p.LocalAddr, p.Addr))
	c, _ := found.(*connection)
	if c == nil {
		return
	}
	now, last := time.Now(), *c.served.Load()
	switch code := status.Code(err); {
	case code == codes.OK, refused(err):
		c.served.Store(&now)
	case code == codes.Unavailable && last.Before(sent) && now.Sub(last) > patience,
		code == codes.DeadlineExceeded && last.Before(sent) && now.Sub(sent) > patience:
		c.Close()
	}
}
