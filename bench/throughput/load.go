package throughput

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"

	"example.com/shop/internal/platform/backoff"
)

// buyers are the connections that make the load.
type buyers struct {
	hosts   []*fasthttp.HostClient // of the instances
	n       int
	skus    []string
	rate    int           // orders per second; 0: a closed loop
	attempt atomic.Int64  // numbers the customers, over all turns
	limit   int64         // of attempts; 0: none
	timeout time.Duration // of a request
	keys    string        // begins the Idempotency-Key of each order; empty: there is none
	own     bool          // each buyer buys one SKU, at one instance, and not all of them in turn
}

// newBuyers makes n buyers of the instances at urls.
func newBuyers(urls []string, n int) (*buyers, error) {
	b := &buyers{n: n, timeout: 20 * time.Second}
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil {
			return nil, err
		}
		b.hosts = append(b.hosts, &fasthttp.HostClient{
			Addr: u.Host, MaxConns: 4 * n, MaxIdleConnDuration: time.Minute, NoDefaultUserAgentHeader: true,
			MaxIdemponentCallAttempts: 1,
			Dial: func(addr string) (net.Conn, error) {
				return (&net.Dialer{Timeout: b.timeout}).DialContext(context.Background(), "tcp", addr)
			},
		})
	}
	return b, nil
}

// Close ends the connections.
func (b *buyers) Close() {
	for _, h := range b.hosts {
		h.CloseIdleConnections()
	}
}

// tally is what buyers saw. Latencies are in microseconds, of orders that were placed.
type tally struct {
	placed, soldOut, refused, failed int64
	firstError                       string
	latencies                        *hdrhistogram.Histogram
}

func newTally() *tally {
	return &tally{latencies: hdrhistogram.New(1, time.Minute.Microseconds(), 3)}
}

func (t *tally) fail(what string) {
	t.failed++
	if t.firstError == "" {
		t.firstError = what
	}
}

// add puts other into t.
func (t *tally) add(other *tally) {
	t.placed += other.placed
	t.soldOut += other.soldOut
	t.refused += other.refused
	t.failed += other.failed
	if t.firstError == "" {
		t.firstError = other.firstError
	}
	t.latencies.Merge(other.latencies)
}

// errDone sends a buyer home.
var errDone = errors.New("done")

// run lets all buyers buy until ctx ends, and waits for orders in flight. The tally has the orders that were due at
// from or later and answered before ctx ended.
func (b *buyers) run(ctx context.Context, from time.Time) *tally {
	var (
		all   = newTally()
		mu    sync.Mutex
		group sync.WaitGroup
		due   = b.clock()
	)
	for i := range b.n {
		group.Go(func() {
			t := newTally()
			host := b.hosts[i%len(b.hosts)]
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			defer fasthttp.ReleaseRequest(req)
			defer fasthttp.ReleaseResponse(resp)
			for {
				at, err := due(ctx)
				if err != nil {
					break
				}
				n := b.attempt.Add(1)
				sku := b.skus[n%int64(len(b.skus))]
				if b.own {
					sku = b.skus[i%len(b.skus)]
				}
				b.order(ctx, host, req, resp, n, sku, at, from, t)
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(t)
		})
	}
	group.Wait()
	return all
}

// clock returns a function that returns when the next order is due: at once, or by the rate. The rate does not depend
// on idle buyers.
func (b *buyers) clock() func(context.Context) (time.Time, error) {
	start := time.Now()
	var issued atomic.Int64
	return func(ctx context.Context) (time.Time, error) {
		n := issued.Add(1)
		if b.limit > 0 && n > b.limit || ctx.Err() != nil {
			return time.Time{}, errDone
		}
		if b.rate == 0 {
			return time.Now(), nil
		}
		at := start.Add(time.Duration(float64(n-1) / float64(b.rate) * float64(time.Second)))
		if wait := time.Until(at); wait > 0 && !backoff.Sleep(ctx, wait) {
			return time.Time{}, errDone
		}
		return at, nil
	}
}

// pause is how long a buyer who was notified that the service is busy waits.
const pause = 5 * time.Millisecond

// order is attempt n: one unit of sku. It retries while the service is too busy, because an order that was due has to
// be placed.
func (b *buyers) order(ctx context.Context, host *fasthttp.HostClient, req *fasthttp.Request, resp *fasthttp.Response, n int64, sku string, due, from time.Time, t *tally) {
	body := make([]byte, 0, 128)
	body = append(body, `{"customer_id":"buyer-`...)
	body = strconv.AppendInt(body, n, 10)
	body = append(body, `","items":[{"sku":"`...)
	body = append(body, sku...)
	body = append(body, `","quantity":1}]}`...)
	for {
		req.Reset()
		req.Header.SetMethod(fasthttp.MethodPost)
		req.Header.SetContentType("application/json")
		req.SetRequestURI("/api/v1/orders")
		req.Header.SetHost(host.Addr)
		if b.keys != "" {
			req.Header.Set("Idempotency-Key", b.keys+"-"+strconv.FormatInt(n, 10))
		}
		req.SetBody(body)
		err := host.DoTimeout(req, resp, b.timeout)
		end := time.Now()
		counts := !due.Before(from) && ctx.Err() == nil
		switch status := resp.StatusCode(); {
		case err != nil:
			t.fail(err.Error()) // at any time: it may have become an order
			return
		case status == fasthttp.StatusCreated:
			if counts {
				t.placed++
				_ = t.latencies.RecordValue(max(1, end.Sub(due).Microseconds()))
			}
			return
		case status == fasthttp.StatusConflict:
			if counts {
				t.soldOut++
			}
			return
		case status == fasthttp.StatusTooManyRequests || status == fasthttp.StatusServiceUnavailable:
			if counts {
				t.refused++
			}
			if !backoff.Sleep(ctx, pause) {
				return
			}
		default:
			t.fail(fmt.Sprintf("status %d: %.200s", status, resp.Body()))
			return
		}
	}
}
