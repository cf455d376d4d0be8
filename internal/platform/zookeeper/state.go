package zookeeper

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/storeurl"
)

// open makes a client, which begins to connect.
func (s *Session) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	c, err := newClient(s)
	if err == nil {
		s.client = c
	}
	return err
}

// receive is called by clients, from their goroutines, and must not block.
func (s *Session) receive(c *client, e zk.Event) {
	if e.Type != zk.EventSession {
		s.watches.fire(e.Path, e.Type)
		return
	}
	s.mu.Lock()
	c.turns++
	turn, known := c.turns, c.known || s.cfg.Auth == ""
	s.mu.Unlock()
	switch e.State {
	case zk.StateHasSession:
		if known {
			s.become(c, Connected)
		} else if s.begin() {
			go s.introduce(c, turn)
		}
	case zk.StateDisconnected:
		s.become(c, Disconnected)
	case zk.StateExpired:
		s.become(c, Expired)
	default: // on the way to one of these
	}
}

// introduce names the user to the server before anything else is sent: nodes are to be made with its ACL.
// If the connection breaks meanwhile, the next one has a turn of its own.
func (s *Session) introduce(c *client, turn int) {
	defer s.running.Done()
	err := c.conn.AddAuth("digest", []byte(s.cfg.Auth))
	s.mu.Lock()
	c.known = c.known || err == nil
	if err != nil || turn != c.turns {
		s.mu.Unlock()
		return
	}
	s.becomeLocked(c, Connected)
}

// become changes the state, on behalf of c.
func (s *Session) become(c *client, next State) {
	s.mu.Lock()
	s.becomeLocked(c, next)
}

// becomeLocked requires mu, and unlocks it.
func (s *Session) becomeLocked(c *client, next State) {
	if c != s.client || next == s.state || next == Disconnected && s.state == Expired {
		s.mu.Unlock()
		return
	}
	s.state = next
	switch next {
	case Connected:
		s.timeout = c.negotiated()
		if s.away != nil {
			s.away.Stop()
			s.away = nil
		}
		s.epoch = max(s.epoch, 1)
	case Disconnected:
		if !s.closed {
			s.away = time.AfterFunc(2*s.timeout, func() { s.replace(c) })
		}
	case Expired:
		s.expire()
	}
	s.notify()
}

// expire ends the epoch. It requires mu.
func (s *Session) expire() {
	s.state = Expired
	s.epoch++
	s.confirmed = time.Time{}
}

// notify passes the state on. It requires mu, and unlocks it.
func (s *Session) notify() {
	state, listeners := s.state, s.listeners
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	for _, l := range listeners {
		l.f(state)
	}
	if state == Expired {
		s.watches.fireAll()
	}
}

// replace gives up a session that has been silent for twice its timeout, and the client with it. The servers may have
// forgotten it without a report: a server that has lost its data refuses clients that have seen more than it has.
func (s *Session) replace(c *client) {
	s.mu.Lock()
	if c != s.client || s.state == Connected || s.closed {
		s.mu.Unlock()
		return
	}
	s.client, s.away = nil, nil
	s.expire()
	s.running.Go(c.close)
	s.notify()
	if s.open() != nil {
		return // closed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next := s.client; s.state != Connected && !s.closed && next != c {
		s.away = time.AfterFunc(2*s.timeout, func() { s.replace(next) })
	}
}

// await returns the client once it is connected. It gives up at the end of ctx, or
// when limit fires.
func (s *Session) await(ctx context.Context, limit <-chan time.Time) (*client, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.mu.Lock()
		c, state, changed, closed := s.client, s.state, s.changed, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case state == Connected:
			return c, nil
		}
		select {
		case <-changed:
		case <-s.life.Done():
			return nil, ErrClosed
		case <-limit:
			return nil, s.because(ErrUnavailable)
		case <-ctx.Done():
			return nil, s.because(ctx.Err())
		}
	}
}

// fail notes why a connection cannot be used, for the errors of the calls that wait for one.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// because adds to err why the last connection could not be used, and what to change in the address.
func (s *Session) because(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return err
	}
	if hint := storeurl.Hint(s.failed); hint != "" {
		return fmt.Errorf("%w: %w: %s", err, s.failed, hint)
	}
	return fmt.Errorf("%w: %w", err, s.failed)
}
