package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// mode is what a Proxy does with traffic.
type mode int

const (
	passing mode = iota
	blackHole
	refusing
)

// Proxy forwards TCP connections to one server until a method makes it fail. Give every client of a server a proxy of
// its own to part them one by one.
//
// Its accept loop and two goroutines per connection are started here; Close
// ends them and waits for them.
type Proxy struct {
	addr    string
	ctx     context.Context //nolint:containedctx // It is the lifetime of the goroutines, ended by Close.
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	upstream string             // guarded by mu
	mode     mode               // guarded by mu
	changed  chan struct{}      // guarded by mu; closed at the next change of mode
	listener net.Listener       // guarded by mu; nil while refusing
	links    map[*link]struct{} // guarded by mu
	pattern  []byte             // guarded by mu; nil unless a reply is to be dropped
	dropped  int                // guarded by mu
	delay    time.Duration      // guarded by mu
	reword   [2]string          // guarded by mu
}

// NewProxy listens on a free loopback port and forwards to the server at
// upstream, a HOST:PORT. The end of ctx does not end the proxy; Close does.
func NewProxy(ctx context.Context, upstream string) (*Proxy, error) {
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Proxy{
		upstream: upstream, ctx: lifetime, stop: stop,
		changed: make(chan struct{}), links: make(map[*link]struct{}),
	}
	listener, port, err := freeListener(ctx)
	if err != nil {
		stop()
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.addr = loopback(port)
	p.serveOn(listener)
	return p, nil
}

// Addr is the HOST:PORT to give to the client.
func (p *Proxy) Addr() string { return p.addr }

// Pass ends BlackHole and Refuse. Data that a black hole has swallowed arrives now, as it would when TCP retransmits
// after a network outage.
func (p *Proxy) Pass() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		if err := p.listen(); err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
	}
	p.set(passing)
	return nil
}

// BlackHole makes everything disappear in both directions. Connections stay
// open and new ones are accepted, so that only a client's own deadline helps it.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(blackHole)
}

// Silence makes everything on the connections that are open now disappear, for good. They stay open, and new
// connections pass: as behind a firewall that has dropped idle connections without notice.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.silent.Store(true)
	}
}

// Refuse breaks every connection and refuses new ones, as a machine without the server.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(refusing)
	p.hangUp()
}

// Lead makes new connections go to another server at upstream, a HOST:PORT. Open ones stay where they are, as those of an
// address that moves do.
func (p *Proxy) Lead(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Reword replaces from by to in replies. It misses a reply that arrives in two reads.
func (p *Proxy) Reword(from, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reword = [2]string{from, to}
}

func (p *Proxy) reworded(reply []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reword[0] == "" {
		return reply
	}
	return bytes.ReplaceAll(reply, []byte(p.reword[0]), []byte(p.reword[1]))
}

// server is where a new connection goes.
func (p *Proxy) server() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upstream
}

// Delay makes each request wait for d, as a line of that round trip does. Zero ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// linger waits for as long as requests are delayed.
func (p *Proxy) linger() {
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
	}
}

// DropReply makes the proxy lose one reply. It forwards the next request that contains pattern, in upper or lower
// case. Then it discards the reply and closes the connection, so the client cannot know that the server has executed
// the request. The protocol must send the pattern in clear, as those of Redis and MariaDB do, with one request at a
// time on a connection. An empty pattern matches any request.
func (p *Proxy) DropReply(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pattern = bytes.ToLower([]byte(pattern))
}

// Dropped says how many replies were lost. A test must look at it: a pattern that
// never occurs would prove nothing.
func (p *Proxy) Dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Close breaks every connection and ends the proxy.
func (p *Proxy) Close() error {
	p.stop()
	p.mu.Lock()
	p.hangUp()
	p.mu.Unlock()
	p.running.Wait()
	return nil
}

// set requires mu.
func (p *Proxy) set(m mode) {
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
}

// hangUp requires mu.
func (p *Proxy) hangUp() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.close()
	}
}

// listen requires mu once the proxy is shared. It waits for processes that are being started: they have the former listener until they
// execute their programs.
func (p *Proxy) listen() error {
	for end := time.Now().Add(stopTimeout); ; time.Sleep(pollInterval) {
		if err := p.ctx.Err(); err != nil {
			return net.ErrClosed
		}
		listener, err := new(net.ListenConfig).Listen(p.ctx, "tcp", p.addr)
		if err == nil {
			p.serveOn(listener)
			return nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return err
		}
	}
}

// serveOn requires mu once the proxy is shared.
func (p *Proxy) serveOn(listener net.Listener) {
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// open blocks while the proxy is a black hole. It reports whether traffic may flow.
func (p *Proxy) open() bool {
	for {
		p.mu.Lock()
		m, changed := p.mode, p.changed
		p.mu.Unlock()
		if m != blackHole {
			return m == passing && p.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return false
		}
	}
}

// takePattern reports whether the reply to the request is to be lost, once.
func (p *Proxy) takePattern(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pattern == nil || !bytes.Contains(bytes.ToLower(request), p.pattern) {
		return false
	}
	p.pattern = nil
	return true
}

// unmatched returns the end of the requests seen that may be the beginning of the pattern.
func (p *Proxy) unmatched(seen []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := min(len(seen), max(0, len(p.pattern)-1))
	return append(seen[:0], seen[len(seen)-keep:]...)
}

func (p *Proxy) countDropped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped++
}

// track registers a link for hangUp. It reports false when that has been and gone.
func (p *Proxy) track(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == refusing || p.ctx.Err() != nil {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
