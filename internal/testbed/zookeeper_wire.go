package testbed

import (
	"context"
	"encoding/binary"
	"errors"
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

// session opens a session and closes it, in the protocol itself: a client library
// would leave goroutines behind.
func (z *ZooKeeper) session(ctx context.Context) error {
	const timeout, passwordLength, closeSession = 1000, 16, -11
	request := binary.BigEndian.AppendUint32(nil, 4+8+4+8+4+passwordLength)
	request = binary.BigEndian.AppendUint32(request, 0) // version of the protocol
	request = binary.BigEndian.AppendUint64(request, 0) // no transaction seen yet
	request = binary.BigEndian.AppendUint32(request, timeout)
	request = binary.BigEndian.AppendUint64(request, 0) // a new session
	request = binary.BigEndian.AppendUint32(request, passwordLength)
	request = append(request, make([]byte, passwordLength)...)
	return z.talk(ctx, func(conn net.Conn) error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		var head struct {
			Length, Version, Timeout int32
			Session                  int64
		}
		if err := binary.Read(conn, binary.BigEndian, &head); err != nil {
			return err
		}
		if head.Session == 0 {
			return errors.New("no session")
		}
		return binary.Write(conn, binary.BigEndian, []int32{8, 1, closeSession})
	})
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
