package zookeeper

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// opSetWatches is the request by which a client that is connected again repeats its watches.
const opSetWatches = 101

// link is a connection to a server. It adds what zk lacks: a bounded handshake, an end with the client, the timeout
// that the server has chosen, and an order, see await.
//
// One goroutine reads at a time, and one writes.
type link struct {
	net.Conn
	client *client
	forget func() bool

	head []byte // the first bytes of the answer to the handshake
	read int    // how many bytes of that answer have been read
	open bool   // whether await has returned

	once      sync.Once
	rewatched chan struct{} // closed when the watches are being repeated
}

// headLength are the length of the answer, the version and the timeout.
const headLength = 4 + 4 + 4

func newLink(c *client, conn net.Conn) *link {
	l := &link{Conn: conn, client: c, rewatched: make(chan struct{})}
	l.forget = context.AfterFunc(c.ends, func() { _ = conn.Close() })
	return l
}

// Close implements net.Conn.
func (l *link) Close() error {
	l.forget()
	return l.Conn.Close()
}

// SetReadDeadline implements net.Conn. zk gives a handshake ten times the time of other waits, in which it could have
// tried the other servers.
func (l *link) SetReadDeadline(t time.Time) error {
	if l.handshake() {
		if t.IsZero() { // after the first bytes; the rest has to come, too
			return nil
		}
		t = time.Now().Add(l.client.negotiated() / 3)
	}
	return l.Conn.SetReadDeadline(t)
}

// handshake reports whether the answer to the handshake has not been read.
func (l *link) handshake() bool {
	return len(l.head) < headLength || l.read < 4+int(binary.BigEndian.Uint32(l.head))
}

// Read implements net.Conn.
func (l *link) Read(b []byte) (int, error) {
	if !l.handshake() {
		if !l.open {
			l.await()
			l.open = true
		}
		return l.Conn.Read(b)
	}
	n, err := l.Conn.Read(b)
	l.client.session.fail(err)
	l.read += n
	if missing := headLength - len(l.head); missing > 0 {
		l.head = append(l.head, b[:min(n, missing)]...)
		if len(l.head) == headLength {
			l.client.timeout.Store(int64(binary.BigEndian.Uint32(l.head[8:])) * int64(time.Millisecond))
		}
	}
	return n, err
}

// await holds back the first answer until the watches are being repeated. zk reads
// there, without a lock, the number of the last transaction that it has seen, which
// the first answer changes.
func (l *link) await() {
	if !l.client.session.watches.armed() {
		return
	}
	select {
	case <-l.rewatched:
	case <-time.After(time.Second): // there was none
	case <-l.client.ends.Done():
	}
}

// Write implements net.Conn. zk writes whole requests: length, number, operation.
func (l *link) Write(b []byte) (int, error) {
	if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == opSetWatches {
		l.once.Do(func() { close(l.rewatched) })
	}
	return l.Conn.Write(b)
}
