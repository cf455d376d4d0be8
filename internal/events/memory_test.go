package events_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

// A full buffer of orders is as large as documented, with a listener and without, and further orders do not make it
// larger.
func TestBufferSize(t *testing.T) {
	for _, listening := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			before := inUse()
			log, all := fleet(t, 1, events.FeedConfig{})
			if listening {
				defer all[0].listen(t, events.Filter{}, "").Close()
			}
			for n := range 8192 + 100 {
				text := fmt.Sprintf(`{"type":"order","instance":"shop-1","at":"2026-01-02T03:04:05.123456789Z","order":{"id":"01890000-0000-7000-8000-%012d","customer_id":"customer-%06d","status":"PENDING","items":[{"sku":"lamp-%04d","quantity":1}],"expires_at":"2026-01-02T03:19:05.123456Z"}}`, n, n, n%1000)
				log.write(t, false, text)
				if n%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			synctest.Wait()
			if kept := all[0].feed.Stats().Kept; kept != 8192 {
				t.Errorf("%d events are kept", kept)
			}
			log.wipe() // that of an instance without Redis is another 4 MB
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
