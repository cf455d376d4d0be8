package zookeeper

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/backoff"
)

// client is one zk.Conn, with what it needs to be bounded in time and to end.
type client struct {
	session *Session
	conn    *zk.Conn
	events  <-chan zk.Event
	ends    context.Context //nolint:containedctx // It is the lifetime of the connections.
	end     context.CancelFunc
	timeout atomic.Int64 // of the session, as a server has it; 0 before it has said so

	turns int  // changes of the connection so far; guarded by mu of the session
	known bool // a server has taken the user, and zk repeats it to the next ones; guarded by mu of the session

	mu       sync.Mutex
	at       int // the next server
	attempts int // since the last session
}

// newClient requires the mutex of s, so that s receives no event of a client before it has stored that client.
func newClient(s *Session) (*client, error) {
	c := &client{session: s, at: rand.IntN(len(s.cfg.Servers))}
	c.ends, c.end = context.WithCancel(s.life)
	var err error
	c.conn, c.events, err = zk.Connect(s.cfg.Servers, s.cfg.Timeout,
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithHostProvider(c), zk.WithDialer(c.dial),
		zk.WithEventCallback(func(e zk.Event) { s.receive(c, e) }))
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// close ends the session if a server answers, and all goroutines of the client.
func (c *client) close() {
	c.conn.Close()
	c.end()
	for range c.events { // until its goroutines have ended
		continue
	}
}

func (c *client) negotiated() time.Duration {
	if d := c.timeout.Load(); d > 0 {
		return time.Duration(d)
	}
	return c.session.cfg.Timeout
}

// Init implements zk.HostProvider. The names are those of the configuration, looked
// up for each connection.
func (c *client) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (c *client) Len() int { return len(c.session.cfg.Servers) }

// Connected implements zk.HostProvider.
func (c *client) Connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = 0
}

// Next implements zk.HostProvider. It pauses after each round of all servers, for
// longer and longer, where zk would pause for a second from the first. To say
// that a round is over makes zk look whether it has been closed.
func (c *client) Next() (server string, roundOver bool) {
	const shortest, longest = 10 * time.Millisecond, time.Second
	c.mu.Lock()
	servers := c.session.cfg.Servers
	server = servers[c.at%len(servers)]
	rounds := c.attempts / len(servers)
	first := c.attempts%len(servers) == 0
	c.at++
	c.attempts++
	c.mu.Unlock()
	if rounds > 0 && first {
		backoff.Jitter(c.ends, min(longest, shortest<<min(rounds, 10)))
	}
	return server, c.ends.Err() != nil
}

func (c *client) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ends, timeout)
	defer cancel()
	conn, err := c.session.cfg.dial(ctx, network, address)
	c.session.fail(err)
	if err != nil {
		return nil, err
	}
	return newLink(c, conn), nil
}

func (cfg Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if cfg.TLS != nil {
		return (&tls.Dialer{Config: cfg.TLS}).DialContext(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// silent is a logger: what goes wrong is in the errors of requests.
type silent struct{}

// Printf implements zk.Logger.
func (silent) Printf(string, ...any) {}
