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
	err := talk(ctx, z.addr, func(conn net.Conn) (err error) {
		if _, err = io.WriteString(conn, word); err == nil {
			answer, err = io.ReadAll(conn)
		}
		return err
	})
	return string(answer), err
}
