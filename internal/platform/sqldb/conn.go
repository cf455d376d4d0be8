package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// serverConnector opens connections to MariaDB, MySQL or PostgreSQL, which get all arguments as text.
//
// The connections of a generation lead to one of the hosts: number G modulo the number of hosts. A server may be demoted,
// when new connections have to lead to its successor: another host, or another server behind the same address. If it
// refuses to write because it is read-only, or a node that is not in step with its cluster, the next generation begins,
// and all connections of those before are dropped. What such a connection to another host reads is no result: a server that
// was paused may answer when it has a successor. If a connection is lost, the others to that host are as doubtful, and idle ones
// are dropped. So a generation begins that leads to the same host first.
// The error stays as it is: the driver's own option RejectReadOnly would hide it, and drops one connection per refusal. A
// refusal is never repeated here: the transaction has to begin again.
//
// The successor may also have what a demoted server lacks. So a read outside a transaction asks first, in its own round trip,
// whether the server has become read-only. Then database/sql reads over a new connection, which a read-only server refuses.
// Only what was opened with [AccessRead] reads at a single server that is read-only.
//
// If scripts are allowed, a transaction begins with its first statement, in one round trip. The driver checks whether
// the server has closed a connection when database/sql takes it from the pool, so BeginTx need not find that out.
type serverConnector struct {
	hosts   []host
	latest  *atomic.Int64 // generation of connections
	breaker *breaker
	scripts bool
	asks    string        // precedes a read, and fails at a server that has become read-only; empty where sessions end with that, or may read there
	opening chan struct{} // an element for each connection that is about to open, if [maxOpening] limits them
}

// breaker is a circuit breaker that the connectors of a database share. While no host accepts writes, each order and each timer of
// all instances wants a connection. A server that has to start a process for each question would do nothing else, and could not be promoted.
// So it opens when a host was read-only, and all others as well or not listening. While it is open, one caller at a time asks the hosts,
// and the others get the last error at once. They do not wait for the next one: database/sql opens the connections of all who wait for one
// in a single goroutine, so a pool would have one answer per search. A connection closes the breaker. So does a caller who leaves early, and a
// host that failed otherwise: it may be a writer that is busy.
type breaker struct{ atomic.Pointer[refusal] }

// refusal is why no host accepted a connection, and until when only the caller who has stored it may ask them. It is nil while the
// breaker is closed.
type refusal struct {
	err   error
	until time.Time
}

// breakerPause is how long the hosts are not asked after an answer.
const breakerPause = time.Second / 4

// enter returns the refusal of a caller who may ask the hosts, and has to replace it afterwards, or the last error if another one asks. One
// who takes longer than limit is no longer waited for.
func (b *breaker) enter(limit time.Duration) (mine *refusal, err error) {
	last := b.Load()
	if last == nil {
		return nil, nil //nolint:nilnil // closed
	}
	mine = &refusal{last.err, time.Now().Add(limit)}
	if time.Now().Before(last.until) || !b.CompareAndSwap(last, mine) {
		return nil, last.err
	}
	return mine, nil
}

// noWriter reports whether a host that failed by err accepts no writes.
func noWriter(err error) bool {
	if _, answered := classify(err); answered {
		return Is(err, ReadOnly)
	}
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.As(err, &name) && name.IsNotFound
}

// none is the generation of a connection that is used no more.
const none = -1

// maxOpening is how many connections for transactions open at once. After a restart of the server a pool needs all of its
// connections. A busy server may not accept so many in time. Its work for those that are given up is lost, and the next ones
// begin again.
const maxOpening = 4

// errLeft is the result of a query at a host that the connections have left. It may have been carried out.
var errLeft = fmt.Errorf("the connections have left this server: %w", io.ErrUnexpectedEOF)

// Connect implements [driver.Connector]. It tries each host once, beginning with that of the latest generation. If another
// one accepts the connection, its generation begins. If the connections lead elsewhere meanwhile, database/sql
// has to try again. If [maxOpening] connections are about to open, it waits for one of them first, as long as an attempt at all
// hosts takes at most. While no host accepts writes, one caller at a time asks, as [breaker] says.
func (c serverConnector) Connect(ctx context.Context) (driver.Conn, error) {
	limit := time.Duration(len(c.hosts)) * hostTimeout
	mine, err := c.breaker.enter(2 * limit)
	if err != nil {
		return nil, err
	}
	defer func() { c.breaker.CompareAndSwap(mine, nil) }() // unless it stays open
	if c.opening != nil {
		select {
		case c.opening <- struct{}{}:
			defer func() { <-c.opening }()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(limit):
			return nil, fmt.Errorf("%d other connections have not opened: %w", maxOpening, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded})
		}
	}
	if mine == nil { // the breaker may have opened meanwhile
		if mine, err = c.breaker.enter(limit); err != nil {
			return nil, err
		}
	}
	latest := c.latest.Load()
	var refused error
	readOnly, maybe := false, false // whether a host is read-only, and another one may accept writes
	for generation := latest; generation < latest+int64(len(c.hosts)) && ctx.Err() == nil; generation++ {
		at := c.hosts[generation%int64(len(c.hosts))]
		conn, err := at.connect(ctx, len(c.hosts) > 1)
		if err == nil {
			c.breaker.Store(nil)
			if c.latest.CompareAndSwap(latest, generation); c.left(generation) {
				_ = conn.Close()
				return nil, driver.ErrBadConn
			}
			return &serverConn{serverSession: conn.(serverSession), of: c, generation: generation}, nil //nolint:errcheck,forcetypeassert // it has all methods
		}
		readOnly = readOnly || Is(err, ReadOnly)
		maybe = maybe || !noWriter(err)
		if len(c.hosts) > 1 {
			err = at.refusal(refused, explained(err, at.secure))
		}
		refused = err
	}
	if refused == nil {
		return nil, ctx.Err()
	}
	if len(c.hosts) > 1 {
		refused = fmt.Errorf("no host accepts writes: %w", refused)
	}
	if readOnly && !maybe && ctx.Err() == nil && c.latest.Load() == latest { // all were asked, and none has accepted since
		c.breaker.CompareAndSwap(mine, &refusal{refused, time.Now().Add(breakerPause)})
	}
	return nil, refused
}

// left reports whether connections lead to another host than those of a generation.
func (c serverConnector) left(generation int64) bool {
	return (c.latest.Load()-generation)%int64(len(c.hosts)) != 0
}

// Driver implements [driver.Connector].
func (c serverConnector) Driver() driver.Driver { return c.hosts[0].Driver() }

// baseConn is what database/sql uses of any connection.
type baseConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
}

// serverSession is what database/sql uses of a connection to a server.
type serverSession interface {
	baseConn
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

// serverConn is a connection of serverConnector. database/sql uses it in one goroutine at a time.
type serverConn struct {
	serverSession

	of         serverConnector
	generation int64 // or [none]
	inside     bool  // a transaction
	pending    bool  // a transaction begins with the next statement
}

// begin adds the beginning of the transaction to query if it is the first.
func (c *serverConn) begin(query string) string {
	if c.pending {
		query = "START TRANSACTION; " + query
	}
	return query
}

// sent says that the outcome of a statement is err. A statement that was skipped is about to be prepared, and was not
// sent. PostgreSQL executes nothing of a text that it cannot read, so the transaction has not begun. If the server is
// read-only or accepts no work, or the connection breaks before ctx ends, the next generation begins. One that was closed before, as
// its caller did not wait, says nothing of the others.
func (c *serverConn) sent(ctx context.Context, err error) error {
	if err == nil {
		c.pending = false
		return nil
	}
	p, ok := c.serverSession.(*postgresConn)
	c.pending = c.pending && (errors.Is(err, driver.ErrSkip) || ok && p.conn.TxStatus() == 'I')
	if Is(err, ReadOnly, Starting) {
		c.of.latest.CompareAndSwap(c.generation, c.generation+1)
	}
	if ctx.Err() == nil && Is(err, Stopping, Lost) && !errors.Is(err, driver.ErrBadConn) {
		c.of.latest.CompareAndSwap(c.generation, c.generation+int64(len(c.of.hosts)))
	}
	return err
}

// BeginTx implements [driver.ConnBeginTx].
func (c *serverConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if !c.of.scripts || options != (driver.TxOptions{}) {
		if _, err := c.serverSession.BeginTx(ctx, options); err != nil {
			return nil, err
		}
	} else {
		c.pending = true
	}
	c.inside = true
	deadline, _ := ctx.Deadline()
	return serverTx{c, deadline}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *serverConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.serverSession.ExecContext(ctx, c.begin(query), args)
	return result, c.sent(ctx, err)
}

// QueryContext implements [driver.QueryerContext].
func (c *serverConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	asks := c.of.asks != "" && !c.inside
	if asks {
		query = c.of.asks + query
	}
	rows, err := c.serverSession.QueryContext(ctx, c.begin(query), args)
	if asks && err != nil && readOnly(err) {
		c.of.latest.CompareAndSwap(c.generation, c.generation+1)
		return nil, driver.ErrBadConn
	}
	if err = c.sent(ctx, err); err == nil && c.of.left(c.generation) {
		return nil, errors.Join(errLeft, rows.Close())
	}
	return rows, err
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *serverConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.pending {
		c.pending = false
		if _, err := c.serverSession.BeginTx(ctx, driver.TxOptions{}); err != nil {
			return nil, err
		}
	}
	return c.serverSession.PrepareContext(ctx, query)
}

// IsValid implements [driver.Validator]: database/sql asks when a connection returns to the pool.
func (c *serverConn) IsValid() bool {
	return c.generation == c.of.latest.Load() && c.serverSession.IsValid()
}

// ResetSession implements [driver.SessionResetter]: database/sql calls it when a connection leaves the pool.
func (c *serverConn) ResetSession(ctx context.Context) error {
	if c.generation != c.of.latest.Load() {
		return driver.ErrBadConn
	}
	return c.serverSession.ResetSession(ctx)
}

// endGrace is how long after the deadline of its transaction a COMMIT or ROLLBACK may wait for an answer.
const endGrace = time.Second / 2

// serverTx is a transaction of a serverConn.
type serverTx struct {
	conn     *serverConn
	deadline time.Time // zero: it has none
}

// Commit implements [driver.Tx]. A COMMIT without an answer in time is one of a lost connection, and not an end of the context: that would
// say that nothing was sent. The server may be well, so other connections to it stay.
func (t serverTx) Commit() error {
	late, err := t.end("COMMIT")
	if late {
		if _, answered := classify(err); !answered {
			err = fmt.Errorf("no answer to COMMIT in time: %w", io.ErrUnexpectedEOF)
		}
	}
	return err
}

// Rollback implements [driver.Tx]. Without an answer in time the connection ends, and the server rolls back.
func (t serverTx) Rollback() error {
	_, err := t.end("ROLLBACK")
	return err
}

// end ends the transaction, whatever became of its own context. If that fails late, perhaps before the statement was sent, no other work
// gets the connection.
func (t serverTx) end(statement string) (late bool, err error) {
	t.conn.inside = false
	if t.conn.pending {
		t.conn.pending = false
		return false, nil // nothing was sent
	}
	ctx := context.Background()
	if !t.deadline.IsZero() {
		limited, cancel := context.WithDeadline(ctx, t.deadline.Add(endGrace))
		defer cancel()
		ctx = limited
	}
	_, err = t.conn.ExecContext(ctx, statement, nil)
	if late = err != nil && ctx.Err() != nil; late {
		t.conn.generation = none
	}
	return late, err
}
