package testbed

import (
	"net"
	"sync"
	"sync/atomic"
)

// longestRead bounds one step of forwarding, in bytes.
const longestRead = 64 << 10

// link is one connection through a Proxy. It is tracked before the server is
// dialled, so that a client in a black hole can be hung up on, too.
type link struct {
	client net.Conn
	// lossy is set before the request is forwarded, so that its reply cannot slip by.
	lossy atomic.Bool
	// silent has everything disappear in both directions.
	silent atomic.Bool

	mu     sync.Mutex
	server net.Conn // guarded by mu; nil until dialled
	closed bool     // guarded by mu
}

// serve forwards one connection until either side, or the proxy, ends it.
func (p *Proxy) serve(client net.Conn) {
	l := &link{client: client}
	defer l.close()
	if !p.track(l) {
		return
	}
	defer p.forget(l)
	if !p.open() {
		return
	}
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.server())
	if err != nil || !l.connect(server) {
		return
	}

	var requests sync.WaitGroup
	requests.Go(func() { p.forwardRequests(l, server) })
	p.forwardReplies(l, server)
	l.close()
	requests.Wait()
}

// forwardRequests looks for the pattern across the borders of reads.
func (p *Proxy) forwardRequests(l *link, server net.Conn) {
	defer l.close()
	buf := make([]byte, longestRead)
	var seen []byte
	for {
		n, err := l.client.Read(buf)
		if p.linger(); err != nil || !p.open() {
			return
		}
		if l.silent.Load() {
			continue
		}
		seen = append(seen, buf[:n]...)
		if p.takePattern(seen) {
			l.lossy.Store(true)
		}
		seen = p.unmatched(seen)
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *Proxy) forwardReplies(l *link, server net.Conn) {
	buf := make([]byte, longestRead)
	for {
		n, err := server.Read(buf)
		if err != nil || !p.open() {
			return
		}
		if l.silent.Load() {
			continue
		}
		if l.lossy.Load() {
			p.countDropped()
			return
		}
		if _, err := l.client.Write(p.reworded(buf[:n])); err != nil {
			return
		}
	}
}

// connect gives the link its second half, unless it has been closed meanwhile.
func (l *link) connect(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// close may be called several times and from any goroutine.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}
