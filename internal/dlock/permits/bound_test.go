package permits_test

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// childEnv makes a run of the test binary an instance that is under load until it is killed. Its fields are URL KEY
// PERMITS GOROUTINES COUNTER, where COUNTER is the address of a [counter].
const childEnv = "SHOP_TEST_PERMITS_CHILD"

// counter counts the operations of other processes into a usage. A child sends "+" when it has begun one, waits for the
// answer, and sends "-" before it ends. So counted operations were in use, also if the child is killed.
type counter struct {
	u        *usage
	listener net.Listener
	conns    sync.WaitGroup
	began    atomic.Int64
}

func count(t testing.TB, u *usage) *counter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{u: u, listener: listener}
	c.conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.conns.Go(func() { c.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		c.conns.Wait()
	})
	return c
}

func (c *counter) serve(conn net.Conn) {
	defer conn.Close()
	using, b := false, make([]byte, 1)
	for {
		if _, err := io.ReadFull(conn, b); err != nil {
			if using {
				c.u.end()
			}
			return
		}
		if using = b[0] == '+'; using {
			c.u.begin()
			c.began.Add(1)
		} else {
			c.u.end()
		}
		conn.Write(b)
	}
}

// TestChild is the child.
func TestChild(t *testing.T) {
	args := strings.Fields(os.Getenv(childEnv))
	if len(args) != 5 {
		t.Skip("this is no child")
	}
	n, _ := strconv.Atoi(args[2])
	goroutines, _ := strconv.Atoi(args[3])
	m := join(t, args[0], args[1], n)
	var wg sync.WaitGroup
	for range goroutines {
		conn, err := net.Dial("tcp", args[4])
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { childLoad(t.Context(), m, conn) })
	}
	wg.Wait()
}

func childLoad(ctx context.Context, m *member, conn net.Conn) {
	say := func(b string) error {
		answer := make([]byte, 1)
		if _, err := io.WriteString(conn, b); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, answer)
		return err
	}
	for {
		release, err := m.Take(ctx)
		if err != nil {
			<-time.After(5 * time.Millisecond)
			continue
		}
		if say("+") != nil {
			return // the parent has ended
		}
		<-time.After(2 * time.Millisecond)
		if say("-") != nil {
			return
		}
		release()
	}
}

// startChild starts a process under load, and returns when it is at work.
func startChild(t testing.TB, c *counter, url, key string, permits, goroutines int) *exec.Cmd {
	t.Helper()
	began := c.began.Load()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(
		[]string{url, key, strconv.Itoa(permits), strconv.Itoa(goroutines), c.listener.Addr().String()}, " "))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child begins", func() bool { return c.began.Load() > began })
	return cmd
}

func kill(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it says that the child was killed
}

// The bound holds while instances come, are killed, and lose their connections
// with everything they have, and all of them want more than there is.
func TestBoundHoldsOverKills(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound, goroutines = 24, 20
		var (
			u       = new(usage)
			url     = testbedtest.Redis(t)
			key     = rand.Text()
			c       = count(t, u)
			victims []*exec.Cmd
			ends    []func()
		)
		for range 2 {
			victims = append(victims, startChild(t, c, url, key, bound, goroutines))
		}
		var done []*atomic.Int64
		for range 2 {
			n, end := join(t, url, key, bound).load(t, u, goroutines, 2*time.Millisecond)
			done, ends = append(done, n), append(ends, end)
		}
		dead := join(t, url, key, bound)
		_, endDead := dead.load(t, u, goroutines, 2*time.Millisecond)
		waitFor(t, "all have a part", func() bool { return dead.Stats().Leased > 0 && done[0].Load() > 0 && done[1].Load() > 0 })
		for _, victim := range victims {
			kill(t, victim)
			before := u.total.Load()
			waitFor(t, "it goes on", func() bool { return u.total.Load() > before+500 })
		}
		endDead()
		dead.rdb.Close() // no permit is returned
		again := startChild(t, c, url, key, bound, goroutines)
		want := int64(testbedtest.Size(4_000, 100_000))
		before := u.total.Load()
		waitFor(t, "enough operations", func() bool { return u.total.Load() > max(want, before+1000) })
		kill(t, again)
		for _, end := range ends {
			end()
		}
		u.check(t, bound)
		if most := u.most.Load(); most < bound/2 {
			t.Errorf("at most %d operations at once: the load does not try the bound", most)
		}
	})
}

// Others use the permits of a killed instance within a TTL and a poll.
func TestPermitsOfKilledAreBack(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const bound = 16
		u := new(usage)
		url, key := testbedtest.Redis(t), rand.Text()
		c := count(t, u)
		victim := startChild(t, c, url, key, bound, 4*bound)
		waitFor(t, "the child has all", func() bool { return u.most.Load() >= bound })
		m := join(t, url, key, bound)
		kill(t, victim)
		start := time.Now()
		var had int
		waitFor(t, "all permits", func() bool {
			if _, err := m.Take(t.Context()); err == nil {
				had++
			}
			return had == bound
		})
		if d := time.Since(start); d > 10*ttl {
			t.Errorf("all permits are back after %v, the TTL is %v", d, ttl)
		} else {
			t.Logf("all permits are back after %v", d)
		}
	})
}
