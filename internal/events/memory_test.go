package events_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/events"
)

// TestBufferSize: a full buffer of orders of three instances is as large as is said, with somebody who listens and
// without; what comes then does not make it larger.
func TestBufferSize(t *testing.T) {
	for _, listening := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			before := inUse()
			wires, all := wired(t, 1, events.FeedConfig{})
			if listening {
				defer all[0].listen(t, events.Filter{}, "").Close()
			}
			var origins []*broadcast.Origin
			for i := range 3 {
				o, _ := broadcast.NewOrigin(fmt.Sprint("shop-", i+1))
				origins = append(origins, o)
			}
			for n := range 8192 + 100 {
				text := fmt.Sprintf(`{"type":"order","instance":"shop-1","at":"2026-01-02T03:04:05.123456789Z","order":{"id":"01890000-0000-7000-8000-%012d","customer_id":"customer-%06d","status":"PENDING","items":[{"sku":"lamp-%04d","quantity":1}],"expires_at":"2026-01-02T03:19:05.123456Z"}}`, n, n, n%1000)
				m, err := origins[n%3].Number("events.order", strings.Clone(text))
				if err != nil {
					t.Fatal(err)
				}
				wires[0].Deliver(m)
				if n%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			synctest.Wait()
			if kept := all[0].feed.Stats().Kept; kept != 8192 {
				t.Errorf("%d events are kept", kept)
			}
			size := inUse() - before
			t.Logf("listening %v: %.1f MB", listening, float64(size)/1e6)
			if size > 12e6 {
				t.Errorf("listening %v: %d bytes", listening, size)
			}
		})
	}
}

// inUse returns how much memory is in use, in bytes.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
