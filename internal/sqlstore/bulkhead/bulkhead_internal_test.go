package bulkhead

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// nothing is what a transaction does that needs no more places.
func nothing(*Places) error { return nil }

// Baskets that wait for a place at one SKU keep no more than one place of another.
func TestWaitForAPlaceKeepsOneOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), 2, nil)
		defer b.Close()
		end, over := make(chan struct{}), make(chan error, 10)
		for range 2 {
			go func() {
				over <- b.Do(t.Context(), []string{"b"}, func(*Places) error {
					<-end
					return nil
				})
			}()
		}
		synctest.Wait()
		found := 0
		for range 4 {
			go func() { over <- b.Do(t.Context(), []string{"a", "b"}, nothing) }()
		}
		go func() { // finds out in its transaction that it needs both
			over <- b.Do(t.Context(), nil, func(p *Places) error {
				found++
				return p.Need("a", "b")
			})
		}()
		synctest.Wait()
		if err := b.Do(t.Context(), []string{"a"}, nothing); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Do(ctx, []string{"b"}, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third order of a SKU with two places: %v", err)
		}
		close(end)
		for range 7 {
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
		if found != 2 {
			t.Errorf("a basket ran %d times, want 2", found)
		}
		if len(b.bySKU) != 0 {
			t.Errorf("%d SKUs are kept that nobody uses", len(b.bySKU))
		}
	})
}

// Two SKUs are in demand: there is always somebody in line for each. Baskets of both have their turn all the same, as
// does a transaction that finds out late that it needs both.
func TestBasketHasItsTurnAmongSingles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), 8, nil)
		defer b.Close()
		work := func() { time.Sleep(5*time.Millisecond + rand.N(5*time.Millisecond)) }
		ctx, stop := context.WithCancel(t.Context())
		var buyers sync.WaitGroup
		var singles [2]atomic.Int64
		for i, sku := range []string{"a", "b"} {
			for range 16 {
				buyers.Go(func() {
					for ctx.Err() == nil {
						_ = b.Do(ctx, []string{sku}, func(*Places) error { work(); return nil })
						singles[i].Add(1)
					}
				})
			}
		}
		synctest.Wait()
		patient, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		for range 40 {
			first := b.Do(patient, []string{"a", "b"}, func(*Places) error { work(); return nil })
			second := b.Do(patient, nil, func(p *Places) error {
				work()
				return p.Need("a", "b")
			})
			if err := errors.Join(first, second); err != nil {
				t.Error(err)
			}
		}
		stop()
		buyers.Wait()
		took := time.Since(began)
		t.Logf("80 baskets in %v, and alongside them %d and %d others", took, singles[0].Load(), singles[1].Load())
		for i := range singles {
			if n := singles[i].Load(); n < int64(6*took/(10*time.Millisecond)) { // of 8 places, one at a time is kept
				t.Errorf("alongside the baskets there were %d", n)
			}
		}
	})
}

// Payments, which read their orders to learn the SKUs, have the first places that come free, in their order, however many purchases wait.
func TestPaymentGoesBeforePurchases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), 2, nil)
		defer b.Close()
		var all sync.WaitGroup
		var purchases atomic.Int64
		for range 50 {
			all.Go(func() {
				_ = b.Do(t.Context(), []string{"a"}, func(*Places) error {
					time.Sleep(time.Second)
					purchases.Add(1)
					return nil
				})
			})
		}
		synctest.Wait()
		paid := make(chan int, 3)
		for i := range cap(paid) {
			go func() {
				err := b.Do(t.Context(), nil, func(p *Places) error {
					if err := p.Need("a"); err != nil {
						return err
					}
					time.Sleep(time.Second)
					paid <- i
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if first, second, third := <-paid, <-paid, <-paid; third != 2 {
			t.Errorf("payments %d and %d went before payment %d", first, second, third)
		}
		if n := purchases.Load(); n > 4 {
			t.Errorf("%d purchases went before three payments, or beside them", n)
		}
		all.Wait()
	})
}

// Transactions of any SKUs, of which some give up, some find out late what they need, and some panic, all come to an end. No SKU has
// more of them than places at any time, and no place is lost.
func TestPlacesAreBoundedAndNeverLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 2
		b := New(t.Context(), most, nil)
		defer b.Close()
		all := []string{"a", "b", "c", "d", "e"}
		var mu sync.Mutex
		inside := map[string]int{}
		count := func(skus []string, by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, sku := range skus {
				if inside[sku] += by; inside[sku] > most {
					t.Errorf("%d transactions of %s", inside[sku], sku)
				}
			}
		}
		var crowd sync.WaitGroup
		for range 50 {
			crowd.Go(func() {
				for range 100 {
					func() {
						defer func() { _ = recover() }()
						skus := append([]string(nil), all...)
						rand.Shuffle(len(skus), func(i, j int) { skus[i], skus[j] = skus[j], skus[i] })
						skus = skus[:1+rand.N(3)]
						known := rand.N(len(skus) + 1)
						ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Second))
						defer cancel()
						_ = b.Do(ctx, skus[:known], func(p *Places) error {
							if err := p.Need(skus...); err != nil {
								return err
							}
							count(skus, 1)
							defer count(skus, -1)
							time.Sleep(rand.N(10 * time.Millisecond))
							if rand.N(10) == 0 {
								panic("a transaction")
							}
							return nil
						})
					}()
				}
			})
		}
		crowd.Wait()
		if len(b.bySKU) != 0 {
			t.Errorf("places of %d SKUs are lost", len(b.bySKU))
		}
	})
}
