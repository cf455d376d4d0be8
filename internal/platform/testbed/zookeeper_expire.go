package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"syscall"
)

// errNoSession is what the server says of a session that it does not have.
var errNoSession = errors.New("testbed: zookeeper: no such session")

// Expire ends a session of another client at once, as the server does when it received nothing from the client for too
// long. It takes the session over and closes it, with the password that the server derives from the number of the
// session. The client may take its session over again meanwhile, so Expire tries until there is none, or ctx ends.
func (z *ZooKeeper) Expire(ctx context.Context, session int64) error {
	for first := true; ; first = false {
		err := talk(ctx, z.addr, func(conn net.Conn) error {
			return endSession(conn, session, sessionPassword(session))
		})
		switch {
		case err == nil, errors.Is(err, errNoSession) && !first:
			return nil
		case errors.Is(err, errNoSession), errors.As(err, new(*net.OpError)) && !errors.Is(err, syscall.ECONNRESET), ctx.Err() != nil:
			return err
		}
	}
}

// session opens a session and closes it, in the protocol itself: a client library
// would leave goroutines behind.
func (z *ZooKeeper) session(ctx context.Context) error {
	return talk(ctx, z.addr, func(conn net.Conn) error {
		return endSession(conn, 0, make([]byte, passwordLength))
	})
}

const passwordLength = 16

// endSession opens a session, a new one if it is 0, and closes it.
func endSession(conn net.Conn, session int64, password []byte) error {
	const timeout, closeSession = 1000, -11
	request := binary.BigEndian.AppendUint32(nil, 4+8+4+8+4+passwordLength)
	request = binary.BigEndian.AppendUint32(request, 0) // version of the protocol
	request = binary.BigEndian.AppendUint64(request, 0) // no transaction seen yet
	request = binary.BigEndian.AppendUint32(request, timeout)
	request = binary.BigEndian.AppendUint64(request, uint64(session))
	request = binary.BigEndian.AppendUint32(request, passwordLength)
	request = append(request, password...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	var answer struct {
		Length, Version, Timeout int32
		Session                  int64
		PasswordLength           int32
		Password                 [passwordLength]byte
	}
	if err := binary.Read(conn, binary.BigEndian, &answer); err != nil {
		return err
	}
	if answer.Timeout == 0 || answer.Session == 0 {
		return errNoSession
	}
	if err := binary.Write(conn, binary.BigEndian, []int32{8, 1, closeSession}); err != nil {
		return err
	}
	var length int32
	return binary.Read(conn, binary.BigEndian, &length) // of the answer: the session is over
}

// sessionPassword is what java.util.Random makes of the number of a session and a
// constant of the server.
func sessionPassword(session int64) []byte {
	const constant, factor, mask = 0xb3415c00, 0x5deece66d, 1<<48 - 1
	seed := (uint64(session) ^ constant ^ factor) & mask
	var password []byte
	for len(password) < passwordLength {
		seed = (seed*factor + 0xb) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}
