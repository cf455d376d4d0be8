package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
)

// distant returns the URL of the database as it is at the end of a long line, on which
// everything that is sent to it takes so much longer.
func distant(t *testing.T, database string, delay time.Duration) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	upstream := u.Host
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", upstream)
			if err != nil {
				near.Close()
				continue
			}
			go func() {
				defer near.Close()
				_, _ = io.Copy(near, far)
			}()
			go func() {
				defer far.Close()
				buffer := make([]byte, 64<<10)
				for {
					n, err := near.Read(buffer)
					<-time.After(delay)
					if _, failed := far.Write(buffer[:n]); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}

// crowd counts what happens to orders that nobody can count one by one.
type crowd struct {
	client *http.Client
	url    func() string

	mu       sync.Mutex
	answers  map[int]int // by status; 0: not heard
	accepted []time.Duration
	refused  []time.Duration
	odd      string // an answer that none should get
}

func (c *crowd) order(ctx context.Context) {
	a := purchase(ctx, c.client, c.url(), "a")
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.err != nil {
		a.status = 0
	}
	c.answers[a.status]++
	switch a.status {
	case http.StatusCreated:
		c.accepted = append(c.accepted, a.took)
	case http.StatusTooManyRequests:
		c.refused = append(c.refused, a.took)
	default:
		c.odd = a.String()
	}
}

// reset forgets everything, and returns how many orders were placed.
func (c *crowd) reset() (placed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	placed = c.answers[http.StatusCreated]
	c.answers, c.accepted, c.refused, c.odd = make(map[int]int), nil, nil, ""
	return placed
}

// steadily orders by so many hands, each one thing after the other, and returns how many orders
// were placed in a second.
func (c *crowd) steadily(ctx context.Context, hands int, d time.Duration) float64 {
	end := time.Now().Add(d)
	var group sync.WaitGroup
	for range hands {
		group.Go(func() {
			for time.Now().Before(end) {
				c.order(ctx)
			}
		})
	}
	group.Wait()
	return float64(c.answers[http.StatusCreated]) / d.Seconds()
}

// regardless orders so often in a second, whatever becomes of earlier orders.
func (c *crowd) regardless(ctx context.Context, perSecond float64, d time.Duration) float64 {
	began := time.Now()
	var group sync.WaitGroup
	var open atomic.Int64
	sent := 0
	for tick := time.NewTicker(10 * time.Millisecond); time.Since(began) < d; <-tick.C {
		for ; float64(sent) < time.Since(began).Seconds()*perSecond; sent++ {
			if open.Load() > 5000 {
				continue // so many sockets are enough
			}
			open.Add(1)
			group.Go(func() {
				c.order(ctx)
				open.Add(-1)
			})
		}
	}
	took := time.Since(began)
	group.Wait()
	return float64(c.answers[http.StatusCreated]) / took.Seconds()
}

// memory returns how much an instance has, in MiB.
func (r *running) memory(t *testing.T) int {
	t.Helper()
	page := (&running{url: r.admin(t)}).want(t, http.StatusOK, "GET", "/metrics", "")
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); ok {
			bytes, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(bytes / (1 << 20))
		}
	}
	return 0 // this system does not tell
}

// Ten times as many orders come in as the instances can place. Those who are too many are told
// so, quickly, and cost those who are served next to nothing. At full size the instances are
// killed one after the other meanwhile.
func TestOverload(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	flags := []string{"--database", distant(t, s.database, 5*time.Millisecond), "--redis", s.redis, "--permits", strconv.Itoa(testbedtest.Size(4, 12))}
	fleet := make([]*spawned, testbedtest.Size(1, 3))
	b := new(balancer)
	use := func(without int) {
		var urls []string
		for i, f := range fleet {
			if i != without {
				urls = append(urls, f.url)
			}
		}
		b.set(urls...)
	}
	for i := range fleet {
		fleet[i] = spawn(t, append(flags, "--instance", fmt.Sprint("shop-", i))...)
	}
	use(-1)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10000000,"strategy":"conditional"}`)
	c := &crowd{client: customers(t), url: b.url, answers: make(map[int]int)}
	hands := testbedtest.Size(4, 12)
	c.steadily(t.Context(), hands, time.Second)
	total := c.reset()
	peak := c.steadily(t.Context(), hands, time.Duration(testbedtest.Size(2, 10))*time.Second)
	total += c.reset()

	before := fleet[0].memory(t)
	over := make(chan struct{})
	killing := new(sync.WaitGroup)
	killing.Go(func() { kills(t, fleet, flags, use, over) })
	goodput := c.regardless(t.Context(), 10*peak, time.Duration(testbedtest.Size(3, 300))*time.Second)
	close(over)
	killing.Wait()
	after := 0
	for _, f := range fleet {
		after = max(after, f.memory(t))
	}
	t.Logf("peak %.0f orders/s; at ten times that %.0f/s are placed (%.0f%%), p50 %v, p99 %v; refusals p50 %v, p99 %v; memory %d MiB, before %d; answers %v",
		peak, goodput, 100*goodput/peak, quantile(c.accepted, 50), quantile(c.accepted, 99), quantile(c.refused, 50), quantile(c.refused, 99), after, before, c.answers)
	total += c.answers[http.StatusCreated]
	unknown := c.answers[0]
	if least := float64(testbedtest.Size(20, 70)) / 100; goodput < least*peak {
		t.Errorf("%.0f orders/s are placed, want at least %.0f%% of %.0f/s", goodput, 100*least, peak)
	}
	if len(c.refused) < len(c.accepted) {
		t.Errorf("%d orders were placed and %d refused: this is no overload", len(c.accepted), len(c.refused))
	}
	if delete(c.answers, http.StatusCreated); len(c.answers) > 1 && len(fleet) == 1 {
		t.Errorf("answers %v, such as %s", c.answers, c.odd)
	}
	if p99 := quantile(c.refused, 99); p99 > 5*time.Second {
		t.Errorf("the p99 of refusals is %v", p99)
	}
	if after > before+300 {
		t.Errorf("%d MiB of memory, %d before", after, before)
	}
	audits, err := books(t, s.database).Audit(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Reserved < int64(total) || a.Reserved > int64(total+unknown) {
		t.Errorf("the books: %v, %d reserved; customers know of %d orders and do not know of %d", a.Broken(), a.Reserved, total, unknown)
	}
}

// kills kills one of several instances every 20 s, and starts another in its place.
func kills(t *testing.T, fleet []*spawned, flags []string, use func(without int), over <-chan struct{}) {
	t.Helper()
	for i := 0; len(fleet) > 1; i = (i + 1) % len(fleet) {
		select {
		case <-over:
			return
		case <-time.After(20 * time.Second):
		}
		fleet[i].kill()
		use(i)
		fleet[i] = spawn(t, append(flags, "--instance", fmt.Sprint("shop-", i))...)
		use(-1)
	}
}

// Two hundred clients send a byte per second, of their headers or of a body. They are cut off,
// and customers do not notice them.
func TestSlowClientsAreCut(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	const (
		slow    = 200
		headers = "POST /api/v1/orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"
	)
	var cut atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	for i := range slow {
		sent := headers + "X-Slow: "
		if i%2 == 0 {
			sent = headers + "Content-Length: 1000\r\n\r\n"
		}
		group.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Error(err)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = io.Copy(io.Discard, conn)
			}()
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					_, _ = conn.Write([]byte(" "))
				case <-gone:
					if ctx.Err() == nil {
						cut.Add(1)
					}
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for placed := 0; ; placed++ {
		select {
		case <-done:
			if cut.Load() != slow || placed == 0 {
				t.Errorf("%d of %d were cut off, while %d orders were placed", cut.Load(), slow, placed)
			}
			return
		case <-time.After(10 * time.Millisecond):
			r.place(t)
		}
	}
}
