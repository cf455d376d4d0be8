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
	s, still := newStage(t), watchStillness(t)
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
	goodput := 0.0
	for rate, again := 10*peak, true; again; rate *= 4 { // as the machine may have stood still when the peak was measured
		over := make(chan struct{})
		go func() {
			defer close(over)
			goodput = c.regardless(t.Context(), rate, time.Duration(testbedtest.Size(3, 300))*time.Second)
		}()
		kills(t, fleet, flags, use, over)
		if odd := c.strange(still); len(odd) > 0 && len(fleet) == 1 {
			t.Errorf("answers %v, such as %s", odd, c.odd)
		}
		if again = len(c.refused) < len(c.accepted) && rate < 300*peak; again {
			total += c.reset()
		}
	}
	after := 0
	for _, f := range fleet {
		after = max(after, f.memory(t))
	}
	t.Logf("peak %.0f orders/s; at ten times that %.0f/s are placed (%.0f%%), p50 %v, p99 %v; refusals p50 %v, p99 %v; memory %d MiB, before %d; answers %v",
		peak, goodput, 100*goodput/peak, quantile(c.accepted, 50), quantile(c.accepted, 99), quantile(c.refused, 50), quantile(c.refused, 99), after, before, c.answers)
	total += c.answers[http.StatusCreated]
	if least := float64(testbedtest.Size(0, 70)) / 100; goodput < least*peak || len(c.accepted) == 0 { // three seconds beside other tests tell nothing about rates
		t.Errorf("%.0f orders/s are placed, want at least %.0f%% of %.0f/s", goodput, 100*least, peak)
	}
	if len(c.refused) < len(c.accepted) {
		t.Errorf("%d orders were placed and %d refused: this is no overload", len(c.accepted), len(c.refused))
	}
	if p99 := quantile(c.refused, 99); p99 > 20*time.Second+still.stood() {
		t.Errorf("the p99 of refusals is %v", p99)
	}
	if after > before+300 {
		t.Errorf("%d MiB of memory, %d before", after, before)
	}
	audits, err := books(t, s.database).Audit(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Reserved < int64(total) || a.Reserved > int64(total+c.unknown) {
		t.Errorf("the books: %v, %d reserved; customers know of %d orders and do not know of %d", a.Broken(), a.Reserved, total, c.unknown)
	}
}

// kills kills one of several instances every 20 s, and starts another in its place, until it
// is over.
func kills(t *testing.T, fleet []*spawned, flags []string, use func(without int), over <-chan struct{}) {
	t.Helper()
	for i := 0; ; i = (i + 1) % len(fleet) {
		var next <-chan time.Time
		if len(fleet) > 1 {
			next = time.After(20 * time.Second)
		}
		select {
		case <-over:
			return
		case <-next:
		}
		fleet[i].kill()
		use(i)
		fleet[i] = spawn(t, append(flags, "--instance", fmt.Sprint("shop-", i))...)
		use(-1)
	}
}
