package testbed_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// pinger is a connection to Redis.
type pinger struct {
	net.Conn
	answers *bufio.Reader
}

func connect(t testing.TB, p *testbed.Proxy) pinger {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pinger{conn, bufio.NewReader(conn)}
}

// answer reads one, for as long as limit.
func (c pinger) answer(limit time.Duration) (string, error) {
	c.SetReadDeadline(time.Now().Add(limit))
	return c.answers.ReadString('\n')
}

// pongs fails the test unless the connection is answered, and returns how long that took.
func (c pinger) pongs(t testing.TB, when string) time.Duration {
	t.Helper()
	began := time.Now()
	io.WriteString(c, "PING\r\n")
	if got, err := c.answer(time.Minute); got != "+PONG\r\n" {
		t.Fatalf("%s: got %q, %v", when, got, err)
	}
	return time.Since(began)
}

// silent fails the test if the connection is answered.
func (c pinger) silent(t testing.TB, when string) {
	t.Helper()
	io.WriteString(c, "PING\r\n")
	if got, err := c.answer(maxWait); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: got %q, %v", when, got, err)
	}
}

// Each fault of a proxy does what it says to connections that are open and to new ones, until the proxy passes again.
func TestProxy(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		p := testbedtest.StartProxy(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
		c := connect(t, p)
		c.pongs(t, "passing")

		p.BlackHole()
		c.silent(t, "black hole")
		connect(t, p).silent(t, "a new connection in a black hole")
		do(t, p.Pass())
		if got, err := c.answer(time.Minute); got != "+PONG\r\n" {
			t.Errorf("what was swallowed: got %q, %v", got, err)
		}

		const delay = 300 * time.Millisecond
		p.Delay(delay)
		if took := c.pongs(t, "delayed"); took < delay {
			t.Errorf("delayed by %v: took %v", delay, took)
		}
		p.Delay(0)
		testbedtest.Eventually(t, "no delay", func() bool { return c.pongs(t, "passing again") < delay })

		p.Silence()
		connect(t, p).pongs(t, "a new connection after a silence")
		c.silent(t, "silenced")

		c = connect(t, p)
		p.Refuse()
		if _, err := c.answer(time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("refused: got %v, want the end of the connection", err)
		}
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("refused: got %v, want %v", err, syscall.ECONNREFUSED)
		}
		do(t, p.Pass())
		connect(t, p).pongs(t, "after a refusal")
	})
}

// A proxy executes a request and drops its reply, once, wherever the reads of the proxy cut the request.
func TestProxyDropsOneReply(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		r := testbedtest.StartRedis(t, testbed.RedisConfig{})
		p := testbedtest.StartProxy(t, r.Addr())
		p.DropReply("INCR")
		c := connect(t, p)
		c.pongs(t, "a request without the pattern")
		for i, part := range []string{"*2\r\n$4\r\nin", "CR\r\n$1\r\nn\r\n"} {
			io.WriteString(c, part)
			if i == 0 {
				<-time.After(maxWait) // so that it is a read of its own
			}
		}
		if got, err := c.answer(time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the reply %q arrived, %v", got, err)
		}
		if n, err := newClient(t, p.Addr()).Incr(t.Context(), "n").Result(); n != 2 || err != nil {
			t.Errorf("next increment: got %d, %v, want 2: the lost one was executed once", n, err)
		}
		if got := p.Dropped(); got != 1 {
			t.Errorf("%d replies dropped, want 1", got)
		}
	})
}

// A process that is being started has the former listener until it executes its program.
func TestProxyPassesAgainWhileProcessesStart(t *testing.T) {
	t.Parallel()
	p := testbedtest.StartProxy(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
	ctx, stop := context.WithCancel(t.Context())
	var starts sync.WaitGroup
	defer starts.Wait()
	defer stop()
	for range 4 {
		starts.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run()
			}
		})
	}
	for range 300 {
		p.Refuse()
		if err := p.Pass(); err != nil {
			t.Fatal(err)
		}
	}
}
