package testbed

import (
	"context"
	"io"
	"net"
)

// Ask puts one of the administrative four-letter questions to the server, such as
// srvr, mntr, cons or wchs.
func (z *ZooKeeper) Ask(ctx context.Context, word string) (string, error) {
	var answer []byte
	err := z.talk(ctx, func(conn net.Conn) (err error) {
		if _, err = io.WriteString(conn, word); err == nil {
			answer, err = io.ReadAll(conn)
		}
		return err
	})
	return string(answer), err
}

// talk opens a connection that ends with ctx, for f.
func (z *ZooKeeper) talk(ctx context.Context, f func(conn net.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", z.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	return f(conn)
}
