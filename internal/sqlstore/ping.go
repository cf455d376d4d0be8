package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pingPatience is how long Ping waits for a pooled connection before it also asks over a new one.
const pingPatience = 250 * time.Millisecond

// Ping asks the database for an answer. On a server, one cut connection is no failure: a server, a firewall or a proxy
// may end a pooled connection while the database works. If that connection fails, or does not answer within 250 ms, Ping
// asks over a new connection too. One answer is enough. Orders cannot use up the connections of Ping.
func (s *Store) Ping(ctx context.Context) error {
	ask := s.pingServer
	if s.engine.OneWriter { // a file has no connection that could be cut
		ask = s.aside.PingContext
	}
	if err := ask(ctx); err != nil {
		return fmt.Errorf("database %s: %w", s.engine.Address, err)
	}
	return nil
}

// pingServer returns nil as soon as a pooled or a new connection has answered. It returns after both of its goroutines.
func (s *Store) pingServer(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	failed, answers := make(chan struct{}), make(chan error, 2)
	asking.Go(func() {
		err := s.aside.PingContext(ctx)
		if err != nil {
			close(failed)
		}
		answers <- err
	})
	asking.Go(func() {
		late := time.NewTimer(pingPatience)
		defer late.Stop()
		select {
		case <-failed:
		case <-late.C:
		case <-ctx.Done():
		}
		answers <- s.pingNew(ctx)
	})
	for range cap(answers) {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// pingNew asks over a connection that is in no pool.
func (s *Store) pingNew(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	db := s.connect(s.engine.Single, 1)
	return errors.Join(db.PingContext(ctx), db.Close())
}
