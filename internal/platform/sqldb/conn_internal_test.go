package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// fakeHost accepts connections, after it has called connecting.
type fakeHost struct {
	driver.Connector

	connecting func()
	refuses    *atomic.Bool // as it is read-only; default: never
	fails      error
}

func (h fakeHost) Connect(context.Context) (driver.Conn, error) {
	h.connecting()
	if h.refuses != nil && h.refuses.Load() {
		return nil, &mysqldriver.MySQLError{Number: outOfRange}
	}
	if h.fails != nil {
		return nil, h.fails
	}
	return new(fakeSession), nil
}

// fakeSession answers everything with an error, which may be none.
type fakeSession struct {
	serverSession

	answer error
	closed bool // the connection, or its rows
}

func (s *fakeSession) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return fakeRows{s}, s.answer
}

func (s *fakeSession) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, s.answer
}

func (*fakeSession) ResetSession(context.Context) error { return nil }

func (*fakeSession) IsValid() bool { return true }

func (s *fakeSession) Close() error {
	s.closed = true
	return nil
}

type fakeRows struct{ *fakeSession }

func (fakeRows) Columns() []string { return nil }

func (fakeRows) Next([]driver.Value) error { return io.EOF }

// connected returns two connections to the first of some hosts.
func connected(t *testing.T, c serverConnector) (one, other *serverConn) {
	t.Helper()
	for _, to := range []**serverConn{&one, &other} {
		conn, err := c.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		*to = conn.(*serverConn)
	}
	return one, other
}

func fakeHosts(connecting func()) serverConnector {
	h := host{Connector: fakeHost{connecting: connecting}}
	return serverConnector{hosts: []host{h, h, h}, latest: new(atomic.Int64), breaker: new(breaker), opening: make(chan struct{}, maxOpening)}
}

// A server that was paused may answer when the connections have left it: what it says is no result. A connection that it accepts
// is not used.
func TestServerThatWasLeftIsNotBelieved(t *testing.T) {
	t.Parallel()
	leave := func() {}
	c := fakeHosts(func() { leave() })
	asked, idle := connected(t, c)
	leave = func() { c.latest.Add(1) }
	if conn, err := c.Connect(t.Context()); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("a connection to a server that was left meanwhile: %v, %v", conn, err)
	}
	if _, err := asked.QueryContext(t.Context(), "SELECT 1", nil); Classify(err) != Lost || Unchanged(err) {
		t.Errorf("an answer of a server that was left: %v", err)
	}
	if !asked.serverSession.(*fakeSession).closed {
		t.Error("the rows are open")
	}
	if err := idle.ResetSession(t.Context()); !errors.Is(err, driver.ErrBadConn) || idle.IsValid() {
		t.Errorf("an idle connection to a server that was left: %v", err)
	}
}

// If a connection is lost, idle ones to its host are not used. New ones lead to the same host first, whose answers count. A caller
// who waits no longer, and an answer of the server, are no loss.
func TestLostConnectionIsNotTheOnlyOne(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // it is a case
		answer error
		lost   bool
	}{
		"lost":               {t.Context(), io.ErrUnexpectedEOF, true},
		"lost to the caller": {gone, context.DeadlineExceeded, false},
		"answered":           {t.Context(), errors.ErrUnsupported, false},
		"closed before":      {t.Context(), driver.ErrBadConn, false},
	} {
		for _, hosts := range []int64{1, 3} {
			at := fakeHosts(func() {})
			at.hosts = at.hosts[:hosts]
			asked, idle := connected(t, at)
			asked.serverSession.(*fakeSession).answer = c.answer
			if _, err := asked.QueryContext(c.ctx, "SELECT 1", nil); !errors.Is(err, c.answer) {
				t.Errorf("%s, %d hosts: %v", name, hosts, err)
			}
			if _, err := idle.QueryContext(t.Context(), "SELECT 1", nil); err != nil {
				t.Errorf("%s, %d hosts: an answer of the same host: %v", name, hosts, err)
			}
			if err := idle.ResetSession(t.Context()); errors.Is(err, driver.ErrBadConn) != c.lost || at.latest.Load()%hosts != 0 {
				t.Errorf("%s, %d hosts: the idle connection: %v; the host is %d", name, hosts, err, at.latest.Load()%hosts)
			}
		}
	}
}

// While each host is read-only, one caller at a time asks them, a few times a second, however many want a connection. The others wait for
// no search but one at most, which may be that of database/sql itself. Soon after a host accepts writes, all have connections.
func TestOneCallerSearchesForAWriter(t *testing.T) {
	t.Parallel()
	for _, answers := range []time.Duration{breakerPause / 5, 2 * breakerPause} { // of a host that is quick, or slow
		synctest.Test(t, func(t *testing.T) {
			var now, most, asked atomic.Int64
			refuses := new(atomic.Bool)
			refuses.Store(true)
			h := host{Connector: fakeHost{refuses: refuses, connecting: func() {
				asked.Add(1)
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(answers)
				now.Add(-1)
			}}}
			c := fakeHosts(nil)
			c.hosts = []host{h, h}
			pool := sql.OpenDB(c)
			defer pool.Close()
			pool.SetMaxOpenConns(8) // the rest waits, and database/sql connects for it
			var callers sync.WaitGroup
			all := func(do func(i int)) (took time.Duration) {
				begun := time.Now()
				for i := range 32 {
					callers.Go(func() { do(i) })
				}
				callers.Wait()
				return time.Since(begun)
			}
			all(func(int) {
				if _, err := pool.Conn(t.Context()); !Is(err, ReadOnly) {
					t.Error(err)
				}
			})
			if n := asked.Load(); n > 2*maxOpening {
				t.Errorf("%d questions, as the first of 32 callers are refused: want those of %d", n, maxOpening)
			}
			asked.Store(0)
			most.Store(0)
			took := all(func(i int) {
				for begun := time.Now(); time.Since(begun) < 20*breakerPause; time.Sleep(time.Duration(10+i%2*5) * time.Millisecond) {
					came := time.Now()
					if conn, err := pool.Conn(t.Context()); !Is(err, ReadOnly) {
						t.Errorf("%v, %v", conn, err)
					}
					if late := time.Since(came); late > 2*answers {
						t.Errorf("an answer after %v", late)
					}
				}
			})
			searches := int64(took / (breakerPause + 2*answers))
			if n := asked.Load(); most.Load() != 1 || n < 2*(searches-2) || n > 2*(searches+2) {
				t.Errorf("%d questions, up to %d at a time, in %v: want about %d", n, most.Load(), took, 2*searches)
			}
			refuses.Store(false)
			pool.SetMaxOpenConns(32)
			conns := make([]*sql.Conn, 32)
			took = all(func(i int) {
				for conns[i] == nil {
					conns[i], _ = pool.Conn(t.Context())
					time.Sleep(time.Millisecond)
				}
			})
			if rounds := time.Duration(len(conns) / maxOpening); took > breakerPause+(rounds+2)*answers {
				t.Errorf("all have connections %v after a host accepts writes", took)
			}
			for _, conn := range conns {
				_ = conn.Close()
			}
		})
	}
}

// A breaker opens if a host is read-only, and all others as well or not listening. Otherwise all callers ask.
func TestBusyWriterIsAskedByAll(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, a := range []struct {
		fails error
		opens bool
	}{
		{&mysqldriver.MySQLError{Number: outOfRange}, true},
		{dial(syscall.ECONNREFUSED), true},
		{dial(syscall.EHOSTUNREACH), true},
		{dial(syscall.ENETUNREACH), true},
		{&net.DNSError{IsNotFound: true}, true},
		{&net.DNSError{IsTemporary: true}, false},
		{dial(os.ErrDeadlineExceeded), false},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, false},
		{&mysqldriver.MySQLError{Number: 1040}, false},                                   // too many connections
		{errors.Join(dial(syscall.ECONNREFUSED), &pgconn.PgError{Code: "53300"}), false}, // the same at the second address of a name
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			h := host{Connector: fakeHost{connecting: func() { asked++ }, fails: a.fails}}
			standby := host{Connector: fakeHost{connecting: func() {}, refuses: new(atomic.Bool)}}
			standby.Connector.(fakeHost).refuses.Store(true)
			c := fakeHosts(nil)
			c.hosts = []host{h, standby}
			for range 2 {
				if conn, err := c.Connect(t.Context()); err == nil {
					t.Errorf("%v: %v", a.fails, conn)
				}
			}
			if (asked == 1) != a.opens || (c.breaker.Load() != nil) != a.opens {
				t.Errorf("%v: asked %d times; the breaker is %v", a.fails, asked, c.breaker.Load())
			}
			c.breaker.Store(&refusal{err: io.EOF}) // it closes when a caller finds out that there may be a writer
			if conn, err := c.Connect(t.Context()); err == nil || (c.breaker.Load() != nil) != a.opens {
				t.Errorf("%v: %v, %v; the breaker is %v", a.fails, conn, err, c.breaker.Load())
			}
			c.hosts = []host{h, h}
			c.breaker.Store(nil)
			if conn, err := c.Connect(t.Context()); err == nil || (c.breaker.Load() != nil) != Is(err, ReadOnly) {
				t.Errorf("%v at all hosts: %v, %v; the breaker is %v", a.fails, conn, err, c.breaker.Load())
			}
		})
	}
	c := fakeHosts(nil) // a connection closes what another caller has opened meanwhile
	c.hosts = []host{{Connector: fakeHost{connecting: func() { c.breaker.Store(&refusal{err: io.EOF}) }}}}
	if _, err := c.Connect(t.Context()); err != nil || c.breaker.Load() != nil {
		t.Errorf("%v; the breaker is %v", err, c.breaker.Load())
	}
}

// A caller who leaves while it asks, or whose answers are older than a connection to another host, says nothing of the hosts: the breaker
// is closed afterwards, and the next caller asks. One who has no answer in time is not waited for.
func TestNextCallerSearchesForAWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuses := new(atomic.Bool)
		refuses.Store(true)
		for _, asks := range []func(c serverConnector, leave func()){
			func(_ serverConnector, leave func()) { leave() },
			func(c serverConnector, _ func()) { c.latest.Add(1) },
		} {
			for _, before := range []*refusal{nil, {err: io.EOF}} {
				ctx, leave := context.WithCancel(t.Context())
				c := fakeHosts(nil)
				h := host{Connector: fakeHost{connecting: func() { asks(c, leave) }, refuses: refuses}}
				copy(c.hosts, []host{h, h, h})
				c.breaker.Store(before)
				if conn, err := c.Connect(ctx); err == nil || c.breaker.Load() != nil {
					t.Errorf("%v, %v; the breaker is %v", conn, err, c.breaker.Load())
				}
				leave()
				c.breaker.Store(before)
				if conn, err := c.Connect(ctx); err == nil || c.breaker.Load() != nil {
					t.Errorf("a caller who has left: %v, %v; the breaker is %v", conn, err, c.breaker.Load())
				}
			}
		}
		b := new(breaker)
		b.Store(&refusal{err: io.EOF, until: time.Now().Add(time.Second)})
		for range 3 {
			time.Sleep(time.Second - 1)
			if _, err := b.enter(time.Second); !errors.Is(err, io.EOF) {
				t.Errorf("another one asks: %v", err)
			}
			time.Sleep(time.Nanosecond)
			if mine, err := b.enter(time.Second); err != nil || mine != b.Load() {
				t.Errorf("that one has no answer in time: %v, %v", mine, err)
			}
		}
	})
}

// Few connections open at once. Others wait until one has opened or failed, their callers leave, or the hosts have had their time.
func TestFewConnectionsOpenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, pause := 0, 0, hostTimeout/4
		c := fakeHosts(func() {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(pause)
			mu.Lock()
			now--
			mu.Unlock()
		})
		connect := func() (time.Duration, error) {
			begun := time.Now()
			_, err := c.Connect(t.Context())
			return time.Since(begun), err
		}
		var all sync.WaitGroup
		for range 3 * maxOpening {
			all.Go(func() {
				if _, err := connect(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != maxOpening {
			t.Errorf("%d connections opened at once, want %d", most, maxOpening)
		}

		wait := time.Duration(len(c.hosts)) * hostTimeout
		pause = 2 * wait
		for range maxOpening {
			all.Go(func() { _, _ = connect() })
		}
		synctest.Wait()
		waited, err := connect()
		if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() || !Unreachable(err) || waited != wait {
			t.Errorf("after %v: %v", waited, err)
		}
		soon, cancel := context.WithTimeout(t.Context(), hostTimeout/2)
		defer cancel()
		if _, err := c.Connect(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who waits for less: %v", err)
		}
		all.Wait()
	})
}

// A COMMIT that ends after the time of its transaction may have been sent or not: its outcome is unknown, unless the server has answered. Its connection is not
// used again.
func TestLateCommitIsUnknown(t *testing.T) {
	t.Parallel()
	for answer, want := range map[error]Class{
		context.DeadlineExceeded:              Lost,
		&mysqldriver.MySQLError{Number: 1213}: Conflict,
	} {
		conn, _ := connected(t, fakeHosts(func() {}))
		conn.serverSession.(*fakeSession).answer = answer
		err := serverTx{conn, time.Now().Add(-endGrace)}.Commit()
		if Classify(err) != want || errors.Is(err, context.DeadlineExceeded) || conn.IsValid() {
			t.Errorf("%v: %v; valid: %v", answer, err, conn.IsValid())
		}
		conn, _ = connected(t, fakeHosts(func() {}))
		conn.serverSession.(*fakeSession).answer = answer
		if err := (serverTx{conn, time.Now().Add(-endGrace)}).Rollback(); err == nil || conn.IsValid() {
			t.Errorf("ROLLBACK, %v: %v; valid: %v", answer, err, conn.IsValid())
		}
	}
}
