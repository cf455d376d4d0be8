package testbed_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestProxyBlackHole(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		p := testbedtest.StartProxy(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answers := bufio.NewReader(conn)
		ping := func(limit time.Duration) (string, error) {
			io.WriteString(conn, "PING\r\n")
			conn.SetReadDeadline(time.Now().Add(limit))
			return answers.ReadString('\n')
		}
		if got, err := ping(time.Minute); got != "+PONG\r\n" {
			t.Fatalf("passing: got %q, %v", got, err)
		}

		p.BlackHole()
		if got, err := ping(maxWait); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("black hole: got %q, %v", got, err)
		}
		if err := silent(t.Context(), newClient(t, p.Addr())); err != nil {
			t.Errorf("new connection in a black hole: %v", err)
		}

		if err := p.Pass(); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if got, err := answers.ReadString('\n'); got != "+PONG\r\n" {
			t.Errorf("what was swallowed: got %q, %v", got, err)
		}
		if got, err := ping(time.Minute); got != "+PONG\r\n" {
			t.Errorf("passing again: got %q, %v", got, err)
		}
	})
}

// A request that is delayed is answered when its time has passed, and one after that at once.
func TestProxyDelay(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	p := testbedtest.StartProxy(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	ping := func() time.Duration {
		began := time.Now()
		io.WriteString(conn, "PING\r\n")
		conn.SetReadDeadline(began.Add(time.Minute))
		if got, err := answers.ReadString('\n'); got != "+PONG\r\n" {
			t.Fatalf("got %q, %v", got, err)
		}
		return time.Since(began)
	}
	p.Delay(delay)
	if took := ping(); took < delay {
		t.Errorf("delayed by %v: took %v", delay, took)
	}
	p.Delay(0)
	testbedtest.Eventually(t, "no delay", func() bool { return ping() < delay })
}

func TestProxyRefuse(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		p := testbedtest.StartProxy(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p.Refuse()
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("open connection: got %v, want its end", err)
		}
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("new connection: got %v, want %v", err, syscall.ECONNREFUSED)
		}
		if err := p.Pass(); err != nil {
			t.Fatal(err)
		}
		if err := newClient(t, p.Addr()).Ping(t.Context()).Err(); err != nil {
			t.Errorf("passing again: %v", err)
		}
	})
}

// A connection that was open when the proxy silenced it stays open without an answer, and a new one is answered.
func TestProxySilence(t *testing.T) {
	t.Parallel()
	p := testbedtest.StartProxy(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
	connect := func() (ping func(limit time.Duration) (string, error)) {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		answers := bufio.NewReader(conn)
		return func(limit time.Duration) (string, error) {
			io.WriteString(conn, "PING\r\n")
			conn.SetReadDeadline(time.Now().Add(limit))
			return answers.ReadString('\n')
		}
	}
	before := connect()
	if got, err := before(time.Minute); got != "+PONG\r\n" {
		t.Fatalf("passing: got %q, %v", got, err)
	}
	p.Silence()
	if got, err := connect()(time.Minute); got != "+PONG\r\n" {
		t.Errorf("new connection: got %q, %v", got, err)
	}
	if got, err := before(maxWait); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("silenced connection: got %q, %v", got, err)
	}
}

func TestProxyDropsOneRedisReply(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		r := testbedtest.StartRedis(t, testbed.RedisConfig{})
		p := testbedtest.StartProxy(t, r.Addr())
		c := newClient(t, p.Addr())
		p.DropReply("INCR")
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Errorf("request without the pattern: %v", err)
		}
		if err := c.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("the reply arrived")
		}
		if n, err := c.Incr(t.Context(), "n").Result(); n != 2 || err != nil {
			t.Errorf("next increment: got %d, %v, want 2: the lost one was executed once", n, err)
		}
		if got := p.Dropped(); got != 1 {
			t.Errorf("%d replies dropped, want 1", got)
		}
	})
}

func TestProxyFindsPatternAcrossReads(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		upstream, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer upstream.Close()
		p := testbedtest.StartProxy(t, upstream.Addr().String())
		p.DropReply("commit")
		client, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := upstream.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for _, part := range []string{"xCO", "MM", "ITx"} {
			io.WriteString(client, part)
			if _, err := io.ReadFull(server, make([]byte, len(part))); err != nil {
				t.Fatal(err)
			}
		}
		io.WriteString(server, "OK")
		client.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := client.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) || p.Dropped() != 1 {
			t.Errorf("got %d bytes, %v, %d dropped", n, err, p.Dropped())
		}
	})
}

func TestProxyDropsReplyToCommit(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		m := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
		mustExec(t, openDatabase(t, m.DSN()), "CREATE TABLE t (n INT PRIMARY KEY)")
		p := testbedtest.StartProxy(t, m.Addr())
		db := openDatabase(t, "root@tcp("+p.Addr()+")/"+testbed.DefaultDatabase)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		p.DropReply("commit")
		if err := tx.Commit(); err == nil {
			t.Error("the reply to COMMIT arrived")
		}
		if n := count(t, db, "SELECT COUNT(*) FROM t"); n != 1 || p.Dropped() != 1 {
			t.Errorf("got %d rows and %d dropped replies, want 1 and 1", n, p.Dropped())
		}
	})
}

func TestClosedProxyStaysClosed(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := testbed.NewProxy(ctx, "127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatalf("the proxy ended with the context of its creation: %v", err)
		}
		defer conn.Close()
		p.BlackHole()
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Fatal(err)
		}
		if err := p.Pass(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("pass: got %v, want %v", err, net.ErrClosed)
		}
	})
}
