package order

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// permitted is how many permits the simulated instance has.
const permitted = 64

// simulated is a service that works on some orders at a time, in the order of their arrival, in a bubble of synctest.
type simulated struct {
	overload

	servers chan struct{}
	random  *rand.Rand
	latency time.Duration // the mean of an order that is alone

	result
}

func simulate(t *testing.T, servers int, latency time.Duration, f func(s *simulated)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&simulated{servers: make(chan struct{}, servers), random: rand.New(rand.NewPCG(1, 2)), latency: latency})
		time.Sleep(time.Minute) // all orders end
	})
}

// capacity is how many orders a second the service can place.
func (s *simulated) capacity() float64 { return float64(cap(s.servers)) / s.latency.Seconds() }

// order places an order if it is admitted.
func (s *simulated) order(first bool) {
	f := s.enter(first, permitted)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		s.rejected++
		return
	}
	s.most = max(s.most, s.inFlight)
	// Half of the latency varies.
	work := s.latency/2 + time.Duration(s.random.ExpFloat64()*float64(s.latency)/2)
	go func() {
		began := time.Now()
		s.servers <- struct{}{}
		time.Sleep(work)
		<-s.servers
		f.answered(nil)
		f.leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took = append(s.took, time.Since(began))
	}()
}

// load has orders come so often for a time, and returns what became of them.
func (s *simulated) load(perSecond float64, d time.Duration, first bool) result {
	s.mu.Lock()
	s.result = result{}
	s.mu.Unlock()
	for began := time.Now(); time.Since(began) < d; {
		s.order(first)
		time.Sleep(time.Duration(s.random.ExpFloat64() / perSecond * float64(time.Second)))
		synctest.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.result
	r.goodput = float64(len(r.took)) / d.Seconds() / s.capacity()
	r.took = slices.Sorted(slices.Values(r.took))
	return r
}

// result is what became of orders.
type result struct {
	took     []time.Duration
	goodput  float64 // orders that were placed, over those that can be
	rejected int
	most     int // in flight at once
}

func (r result) p99() time.Duration { return r.took[len(r.took)*99/100] }

// Ten times as many orders come as can be placed. Nearly the full rate is placed, and once the permits are used up,
// accepted orders take at most three times as long as alone. The service works on one order at a time or on many, is quick or
// slow, and all orders want one SKU or each another.
func TestOverloadRefusesEarly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		servers int
		latency time.Duration
	}{{1, 4 * time.Millisecond}, {2, 4 * time.Millisecond}, {8, 4 * time.Millisecond}, {8, 400 * time.Millisecond}, {2, 900 * time.Millisecond}} {
		for _, first := range []bool{false, true} {
			simulate(t, c.servers, c.latency, func(s *simulated) {
				unloaded := s.load(s.capacity()/100, 5000*c.latency, true)
				s.load(10*s.capacity(), 250*c.latency, first)
				r := s.load(10*s.capacity(), 1250*c.latency, first)
				ratio := float64(r.p99()) / float64(unloaded.p99())
				t.Logf("%d at once in %v, first %v: goodput %.2f, p99 %.2f times the unloaded, %d in flight at most", c.servers, c.latency, first, r.goodput, ratio, r.most)
				if r.goodput < 0.9 || ratio > 3 {
					t.Error("want a goodput of 0.9, and a p99 within 3 times the unloaded")
				}
			})
		}
	}
}

// A service works on all waiting orders at once, and takes as long as for one. Ten times as many come as it can place
// one by one: it places nearly all, although each takes twice as long as alone. So it does soon after it has become slower.
func TestSharedWorkIsNoOverload(t *testing.T) {
	t.Parallel()
	for slower, want := range map[time.Duration]int{1: 9900, 30: 9900, 200: 9400} { // a drain in vain refuses for a part of the time
		synctest.Test(t, func(t *testing.T) {
			var work atomic.Int64
			latency := 10 * time.Millisecond
			work.Store(int64(latency))
			o := new(overload)
			waiting := make(chan *flight, permitted)
			var wg sync.WaitGroup
			wg.Go(func() {
				for f := range waiting {
					batch := []*flight{f}
					for len(waiting) > 0 {
						batch = append(batch, <-waiting)
					}
					time.Sleep(time.Duration(work.Load() + rand.N(work.Load()/10)))
					for _, f := range batch {
						f.answered(nil)
						f.leave()
					}
				}
			})
			load := func(pause time.Duration, n int) (placed int) {
				for range n {
					if f := o.enter(false, permitted); f != nil {
						f.shares = true
						waiting <- f
						placed++
					}
					time.Sleep(pause)
					synctest.Wait()
				}
				return placed
			}
			load(10*latency, 100)
			latency *= slower
			work.Store(int64(latency))
			o.limit = fewest
			load(latency/10, int((2*time.Minute+20*latency)/(latency/10)))
			if placed := load(latency/10, 10000); placed < want {
				t.Errorf("%d times slower: %d of 10,000 are placed, and %d may be in flight", slower, placed, o.usable(permitted))
			}
			close(waiting)
			wg.Wait()
		})
	}
}

// A burst after a calm finds all permits, however small the bound was under load.
func TestBurstAfterACalm(t *testing.T) {
	t.Parallel()
	simulate(t, 1, 4*time.Millisecond, func(s *simulated) {
		s.load(s.capacity()/100, 10*time.Second, true)
		s.load(10*s.capacity(), 10*time.Second, false)
		if n := s.usable(permitted); n > 10 {
			t.Errorf("the bound is %d under load", n)
		}
		time.Sleep(2 * permitted * s.latency)
		for n := range permitted {
			if s.enter(false, permitted) == nil {
				t.Fatalf("the burst ends after %d orders", n)
			}
		}
		time.Sleep(time.Minute)
	})
}

// A burst after a calm fills the permits of a quick service only. If a slow one turns out to work on many orders at once, the bound grows to what
// it can place.
func TestBurstToASlowServiceIsBounded(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 20} {
		const latency = 160 * time.Millisecond
		simulate(t, servers, latency, func(s *simulated) {
			s.load(1, time.Minute, true)
			admitted := 0
			for range permitted {
				if s.enter(false, permitted) != nil {
					admitted++
				}
			}
			if admitted > leastBurst {
				t.Errorf("%d at once: a burst of %d orders is admitted, want at most %d", servers, admitted, leastBurst)
			}
		})
		simulate(t, servers, latency, func(s *simulated) {
			s.load(1, time.Minute, true)
			s.load(10*s.capacity(), 20*time.Second, false)
			if r := s.load(10*s.capacity(), time.Minute, false); r.goodput < 0.9 {
				t.Errorf("%d at once: goodput %.2f", servers, r.goodput)
			}
		})
	}
}

// An order that waits for a lease or a locked row does not count, and its latency is that of the service.
func TestBlockedOrderIsNotInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o overload
		f := o.enter(true, 1)
		f.begin()
		f.block(true)
		f.block(true)
		other := o.enter(true, 1)
		if other == nil {
			t.Fatal("a blocked order takes the room of another one")
		}
		other.leave()
		time.Sleep(time.Minute)
		f.block(false)
		f.block(false)
		if o.enter(false, 1) != nil {
			t.Error("it is not counted again")
		}
		time.Sleep(time.Millisecond)
		f.answered(nil)
		if o.alone != time.Millisecond {
			t.Errorf("its latency is %v, want %v", o.alone, time.Millisecond)
		}
		f.block(true)
		f.leave()
		gone := o.enter(true, 1)
		gone.leave() // its caller has left, and the queue learns of it later
		gone.block(true)
		blocked := o.enter(true, 1)
		blocked.block(true)
		blocked.leave() // from a lane whose lease comes later
		blocked.block(false)
		if o.inFlight != 0 || o.firsts != 0 {
			t.Errorf("%d in flight, of them %d first, want none", o.inFlight, o.firsts)
		}
	})
}

// A service that becomes slower during an overload, or begins with a slow order, still places what it can.
func TestOverloadOfAServiceThatChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct{ from, to time.Duration }{
		"slower": {5 * time.Millisecond, 20 * time.Millisecond}, "faster": {100 * time.Millisecond, 20 * time.Millisecond},
		"much slower": {5 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulate(t, 2, change.from, func(s *simulated) {
				s.load(s.capacity()/100, 10*time.Second, true)
				s.load(3*s.capacity(), 10*time.Second, false)
				s.latency = change.to
				s.load(3*s.capacity(), 5*time.Minute, false)
				r := s.load(10*s.capacity(), 1000*s.latency, false)
				ratio := float64(r.p99()) / float64(s.latency)
				t.Logf("goodput %.2f, p99 %.2f times the mean", r.goodput, ratio)
				if r.goodput < 0.9 || ratio > 6 {
					t.Error("want a goodput of 0.9 and a p99 of 6 times the mean")
				}
			})
		})
	}
}

// The latency of an order alone excludes its wait for a permit, and is measured while no other order is in flight. One
// very slow order is soon forgotten.
func TestLatencyOfAnOrderAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o overload
		alone := func(took time.Duration) {
			f := o.enter(true, permitted)
			time.Sleep(time.Second / 2) // for its permit
			f.begin()
			time.Sleep(took)
			f.answered(nil)
			f.leave()
		}
		const work = 4 * time.Millisecond
		alone(100 * work)
		for range 8 {
			alone(work)
		}
		if o.alone > 2*work {
			t.Errorf("%v, want %v", o.alone, work)
		}
		o.limit, o.refusals = 8, 1
		time.Sleep(drainEvery + time.Millisecond) // one has to begin alone
		f := o.enter(false, permitted)
		o.refusals++
		if o.enter(false, permitted) != nil {
			t.Error("an order began alongside the one that is measured alone")
		}
		f.leave()
		for range 2 {
			if o.enter(false, permitted) == nil {
				t.Error("no room after it")
			}
		}
	})
}
