package zookeeper

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is what a process knows about its session.
type State int

// States of a session.
const (
	// Disconnected: no server answers. The session may go on, or end unheard.
	Disconnected State = iota
	// Connected: a server answers, and the session lives.
	Connected
	// Expired: the session is over, with its ephemeral nodes. Another one begins
	// as soon as a server answers.
	Expired
)

// String is the name of the state in lower case.
func (s State) String() string { return [...]string{"disconnected", "connected", "expired"}[s] }

const defaultRoot = "/shop"

// Config is the configuration of a [Session].
type Config struct {
	// Servers are the HOST:PORT of the servers; any of them will do.
	Servers []string

	// TLS is for connections to the servers. Nil means none.
	TLS *tls.Config

	// Timeout is how long the servers keep a session that sends nothing. The servers may choose another one, see
	// [Session.Timeout]. 0 means 10 s.
	Timeout time.Duration

	// Root is put before every path. It is made on demand. Empty means "/shop".
	Root string

	// Auth is the USER:PASSWORD of the scheme digest. The nodes of the session are then of this user
	// alone. Empty means none: everybody who reaches the servers may read and change them.
	Auth string
}

// Session is the connection of a process to ZooKeeper, and its sessions there, one
// after the other. It is safe for concurrent use.
type Session struct {
	cfg  Config
	life context.Context //nolint:containedctx // It is the lifetime of the goroutines, ended by Close.
	stop context.CancelFunc

	running sync.WaitGroup // calls in flight and whatever else Close waits for; grows under mu
	watches watches
	orphans orphans

	mu        sync.Mutex
	client    *client // nil while one is replaced by another
	state     State
	epoch     uint64
	confirmed time.Time     // when the last request was sent that a majority has accepted in this epoch
	timeout   time.Duration // as the servers have it
	failed    error         // why the last connection could not be used
	changed   chan struct{} // closed when state changes
	listeners []*listener
	closing   []func()    // called by Close before the session ends
	away      *time.Timer // replaces the client; nil while connected
	closed    bool
}

type listener struct{ f func(State) }

// Connect opens a session. It blocks until there is one, or ctx ends: then it returns an error that names the servers,
// and nothing continues. The session outlives ctx, from which it takes values only; [Session.Close] ends it.
func Connect(ctx context.Context, cfg Config) (*Session, error) {
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := s.await(ctx, nil); err != nil {
		_ = s.Close(s.life) // what it could say is that there is no session
		return nil, s.refused(err)
	}
	return s, nil
}

// Open begins a session and does not wait for a server to answer: until one does the session is
// [Disconnected]. As that of [Connect] it outlives ctx.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	cfg.Root = strings.TrimRight(cmp.Or(cfg.Root, defaultRoot), "/")
	if len(cfg.Servers) == 0 {
		return nil, errors.New("zookeeper: no servers are named")
	}
	if cfg.Root != "" && !strings.HasPrefix(cfg.Root, "/") {
		return nil, fmt.Errorf("zookeeper: root %q does not begin with a slash", cfg.Root)
	}
	if user, password, _ := strings.Cut(cfg.Auth, ":"); cfg.Auth != "" && (user == "" || password == "") {
		return nil, errors.New("zookeeper: auth: want USER:PASSWORD")
	}
	s := &Session{cfg: cfg, timeout: cfg.Timeout, changed: make(chan struct{})}
	s.life, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.watches.paths = map[watchKey]*watched{}
	if err := s.open(); err != nil {
		_ = s.Close(s.life)
		return nil, s.refused(err)
	}
	return s, nil
}

func (s *Session) refused(err error) error {
	return fmt.Errorf("zookeeper: connect to %s: %w", strings.Join(s.cfg.Servers, ","), err)
}

// Close ends the session and its ephemeral nodes, if a server answers within about a second. Otherwise the servers end
// it after its timeout. Before that it calls what [Session.OnClose] was given. Calls in flight return. It waits for
// them, and for all goroutines, or for the end of ctx: then they end by themselves soon after.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	closed, c, closing := s.closed, s.client, s.closing
	s.closed, s.closing = true, nil
	if s.away != nil {
		s.away.Stop()
	}
	s.mu.Unlock()
	if closed {
		return nil
	}
	for _, f := range closing {
		f()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c != nil {
			c.close()
		}
		s.stop()
		s.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.stop()
		return fmt.Errorf("zookeeper: close: %w", ctx.Err())
	}
}

// OnClose has f called once, by Close before the session ends, or now if it was closed: who
// relies on the session stops. f must not block, and no request of it is sent any more.
func (s *Session) OnClose(f func()) {
	s.mu.Lock()
	if !s.closed {
		s.closing = append(s.closing, f)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	f()
}

// State returns what is known about the session now.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Timeout returns how long the servers keep a session that sends nothing.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Raised reports whether the servers keep a session for longer than was asked for. Then they keep it for the shortest
// time that they allow, which is two of their ticks by default.
func (s *Session) Raised() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout > s.cfg.Timeout
}

// Epoch numbers the sessions. It changes when a session is known to be over: the
// ephemeral nodes that were made in an earlier epoch are gone, or will be.
func (s *Session) Epoch() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// Confirmed returns when the last request was sent that a majority has accepted, in
// the present epoch. The session cannot end before Timeout has passed from then;
// see the package comment for how much of that may be relied on. It is zero if
// there is none.
func (s *Session) Confirmed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.confirmed
}

// OnState calls f with each new state, in order, from a goroutine of the connection. f must not block or call the
// session's requests. After stop has returned, a call of f may still be under way.
func (s *Session) OnState(f func(State)) (stop func()) {
	l := &listener{f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listeners = slices.DeleteFunc(slices.Clone(s.listeners), func(other *listener) bool { return other == l })
	}
}

// begin registers something that Close has to wait for.
func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}
