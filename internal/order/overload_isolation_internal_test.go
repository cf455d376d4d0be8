package order

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/stock"
)

// As many orders as are admitted wait for a row or lock of their own SKU. They leave room for others, whether the
// service was overloaded before or not, and whether other orders of their SKUs are in flight or not.
func TestStuckOrdersLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	for _, before := range []float64{0.1, 10} {
		for _, first := range []bool{true, false} {
			const most = 0.05
			simulate(t, 8, 4*time.Millisecond, func(s *simulated) {
				s.load(s.capacity()/100, 10*time.Second, true)
				s.load(before*s.capacity(), 10*time.Second, true)
				over := time.Now().Add(30 * time.Second)
				go s.stick(over)
				r := s.load(100, time.Until(over), first)
				share := float64(r.rejected) / float64(r.rejected+len(r.took))
				t.Logf("load %v before, first %v: %.1f%% of the orders of others are refused", before, first, 100*share)
				if share > most {
					t.Errorf("want %.0f%% at most", 100*most)
				}
			})
		}
	}
}

// One SKU is in great demand, and its row serves one order at a time. All orders of another SKU find room. Those of the first that
// are accepted are quick.
func TestHotSKULeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := permits.New(nil, permits.Config{Permits: permitted})
		if err != nil {
			t.Fatal(err)
		}
		s := &Service{permits: limiter}
		const work = 4 * time.Millisecond
		row := make(chan struct{}, 1)
		var mu sync.Mutex
		took, refused := map[string][]time.Duration{}, map[string]int{}
		order := func(sku string, row chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			e := &entry{ctx: t.Context(), offers: []stock.Offer{{SKU: sku}}}
			leave, err := s.enter(e)
			if err != nil {
				refused[sku]++
				return
			}
			go func() {
				began := time.Now()
				if row != nil {
					row <- struct{}{}
				}
				time.Sleep(work)
				if row != nil {
					<-row
				}
				for _, f := range e.flights {
					f.answered(nil)
				}
				leave()
				mu.Lock()
				defer mu.Unlock()
				took[sku] = append(took[sku], time.Since(began))
			}()
		}
		const hot, calm, length = 2500, 60, 20 * time.Second // orders per second
		order("calm", nil)
		time.Sleep(time.Second)
		for i := range int(length.Seconds() * hot) {
			order("hot", row)
			if i%(hot/calm) == 0 {
				order("calm", nil)
			}
			time.Sleep(time.Second / hot)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		n := len(took["hot"])
		p99 := slices.Sorted(slices.Values(took["hot"][n/20:]))[(n-n/20)*99/100] // without the burst at the beginning
		t.Logf("hot: %d placed, p99 %v; calm: %d placed, %d refused", n, p99, len(took["calm"]), refused["calm"])
		if refused["calm"] > 0 {
			t.Errorf("%d orders of the other SKU were refused", refused["calm"])
		}
		if most := 3 * work; p99 > most || float64(n) < 0.9*length.Seconds()/work.Seconds() {
			t.Errorf("hot: %d placed, p99 %v, want 90%% of %v and %v at most", n, p99, length/work, most)
		}
	})
}

// stick has customers of a SKU come again and again whose orders wait for ten seconds, half as many as there are permits.
func (s *simulated) stick(until time.Time) {
	var waiting atomic.Int64
	for first := true; time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if waiting.Load() == permitted/2 {
			s.refused()
			continue
		}
		if f := s.enter(first, permitted); f != nil {
			first = false
			f.block(true)
			waiting.Add(1)
			time.AfterFunc(10*time.Second, func() {
				waiting.Add(-1)
				f.leave()
			})
		}
	}
}
