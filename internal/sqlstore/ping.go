package sqlstore

import (
	"context"
	"database/sql"
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
	return s.ask(ctx, func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) })
}

// emptyOrder are refused by a server that would refuse an order: it is read-only, has no quorum, or lets the user insert
// or update nothing. They write nothing, and cost what reads cost.
var emptyOrder = [...]string{"INSERT INTO orders SELECT * FROM orders WHERE 1 = 0", "UPDATE skus SET version = version WHERE 1 = 0"}

// Ready is Ping with the question whether the database would store an order. It returns [ErrNoSchema] if the schema is older
// than the program, and the refusal of a server that accepts no order. Next to a file it writes a small one.
func (s *Store) Ready(ctx context.Context) error {
	return s.ask(ctx, func(ctx context.Context, db *sql.DB) error {
		if err := s.requireLatest(ctx, db); err != nil {
			return err
		}
		if s.engine.OneWriter {
			return s.engine.Room()
		}
		for _, statement := range emptyOrder {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return schema(err)
			}
		}
		return nil
	})
}

// ask puts a question to the database, over one or two connections.
func (s *Store) ask(ctx context.Context, question func(context.Context, *sql.DB) error) (err error) {
	if s.engine.OneWriter { // a file has no connection that could be cut
		err = question(ctx, s.aside)
	} else {
		err = s.askServer(ctx, question)
	}
	if err != nil {
		return fmt.Errorf("database %s: %w", s.engine.Address, err)
	}
	return nil
}

// askServer returns nil as soon as a pooled or a new connection has answered. It returns after both of its goroutines.
func (s *Store) askServer(ctx context.Context, question func(context.Context, *sql.DB) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	failed, answers := make(chan struct{}), make(chan error, 2)
	asking.Go(func() {
		err := question(ctx, s.aside)
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
		answers <- s.askNew(ctx, question)
	})
	for range cap(answers) {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// askNew asks over a connection that is in no pool.
func (s *Store) askNew(ctx context.Context, question func(context.Context, *sql.DB) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	db := s.connect(s.engine.Single, 1)
	return errors.Join(question(ctx, db), db.Close())
}
