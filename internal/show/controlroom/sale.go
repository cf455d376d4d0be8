package controlroom

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/stock"
)

// Order is a sale that somebody wants to see.
type Order struct {
	Strategies []string `json:"strategies"` // one or two
	Units      int      `json:"units"`
	Attempts   int      `json:"attempts"`
	Buyers     int      `json:"buyers"` // who ask at the same time, of each SKU
	Wait       int      `json:"wait_s"` // seconds that a buyer waits for units of a SKU that is sold out
}

// validate says what is wrong with an order.
func (o Order) validate() error {
	known := stock.NewStrategies(stock.Lockers{}).Names()
	switch {
	case len(o.Strategies) < 1 || len(o.Strategies) > 2 || len(o.Strategies) == 2 && o.Strategies[0] == o.Strategies[1]:
		return errors.New("want one or two strategies")
	case o.Units < 1 || o.Units > 100_000:
		return fmt.Errorf("%d units: want 1 to 100000", o.Units)
	case o.Attempts < 1 || o.Attempts > 1_000_000:
		return fmt.Errorf("%d attempts: want 1 to 1000000", o.Attempts)
	case o.Buyers < 1 || o.Buyers > 256:
		return fmt.Errorf("%d buyers: want 1 to 256", o.Buyers)
	case o.Attempts <= o.Units:
		return fmt.Errorf("%d attempts for %d units: want more attempts than units, as only a sale that is sold out shows whether it oversells", o.Attempts, o.Units)
	case o.Wait < 0 || o.Wait > 30:
		return fmt.Errorf("%d seconds of waiting: want 0 to 30", o.Wait)
	}
	for _, s := range o.Strategies {
		if !slices.Contains(known, s) {
			return fmt.Errorf("no strategy %q; there are %s", s, strings.Join(known, ", "))
		}
	}
	return nil
}

// sample is half a second of a lane.
type sample struct {
	At        int64   `json:"at"` // milliseconds since the epoch
	PerSecond float64 `json:"per_second"`
	P99       float64 `json:"p99_ms"`
}

// books are what an audit of a lane found.
type books struct {
	OnHand    int64     `json:"on_hand"`
	Reserved  int64     `json:"reserved"`
	Accepted  int64     `json:"accepted"`
	Oversold  int64     `json:"oversold"`
	Undersold int64     `json:"undersold"`
	Lost      int64     `json:"lost_updates"`
	Broken    []string  `json:"broken"`
	At        time.Time `json:"at"`
	Error     string    `json:"error,omitempty"`
}

// lane is the sale of one SKU. Its fields are guarded by the room's mu.
type lane struct {
	Strategy string   `json:"strategy"`
	SKU      string   `json:"sku"`
	Accepted int      `json:"accepted"`
	Rejected int      `json:"rejected"`
	Failed   int      `json:"failed"`
	Failure  string   `json:"failure,omitempty"` // the first
	Buyers   []int    `json:"buyers"`            // that were accepted, in this order; at most buyersKept
	Samples  []sample `json:"samples"`
	Books    *books   `json:"books,omitempty"`

	recent []time.Duration // latencies since the last sample
}

// sale is one or two lanes at the same time. Its fields are guarded by the room's mu.
type sale struct {
	Order   Order   `json:"order"`
	Running bool    `json:"running"`
	Ended   int64   `json:"ended,omitempty"` // milliseconds since the epoch
	Lanes   []*lane `json:"lanes"`

	stop context.CancelFunc
}

const (
	sampleEvery = 500 * time.Millisecond
	samplesKept = 240
	buyersKept  = 4000
	auditEvery  = 5 * time.Second
)

// sell starts a sale. It returns when its SKUs exist; the sale continues until all attempts are made, or ctx ends.
func (r *Room) sell(ctx context.Context, o Order) error {
	if err := o.validate(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &sale{Order: o, Running: true, stop: stop}
	run := strings.ToLower(rand.Text()[:6])
	for _, name := range o.Strategies {
		s.Lanes = append(s.Lanes, &lane{Strategy: name, SKU: name + "-" + run, Samples: []sample{}, Buyers: []int{}})
	}
	r.mu.Lock()
	if r.sale != nil && r.sale.Running {
		r.mu.Unlock()
		stop()
		return conflict{errors.New("a sale is under way: stop it first")}
	}
	r.sale = s
	r.notify()
	r.mu.Unlock()
	shop := r.newShop(o.Buyers)
	shop.Wait = time.Duration(o.Wait) * time.Second
	for _, l := range s.Lanes {
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := shop.Stock(limited, l.SKU, l.Strategy, o.Units)
		cancel()
		if err != nil {
			r.end(s)
			return unavailable{err}
		}
	}
	var lanes sync.WaitGroup
	for _, l := range s.Lanes {
		lanes.Go(func() { r.run(ctx, shop, s, l) })
	}
	done := make(chan struct{})
	r.tasks.Go(func() {
		lanes.Wait()
		close(done)
		shop.Close()
	})
	r.tasks.Go(func() { r.watch(ctx, s, done, r.audit) })
	return nil
}

// end marks a sale as over.
func (r *Room) end(s *sale) {
	s.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Running, s.Ended = false, time.Now().UnixMilli()
	r.notify()
}

// run lets the buyers of one lane make all attempts.
func (r *Room) run(ctx context.Context, shop *buyers.Shop, s *sale, l *lane) {
	result := shop.Sell(ctx, l.SKU, s.Order.Attempts, func(o buyers.Outcome, buyer int, took time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch o {
		case buyers.AtLimit:
			return
		case buyers.Accepted:
			l.Accepted++
			if len(l.Buyers) < buyersKept {
				l.Buyers = append(l.Buyers, buyer)
			}
		case buyers.Rejected:
			l.Rejected++
		case buyers.Failed:
			l.Failed++
		}
		l.recent = append(l.recent, took)
		r.notify()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	l.Failure = result.FirstError
}

// watch samples and audits a sale until it is done, and then once more. There is one audit at a time.
func (r *Room) watch(ctx context.Context, s *sale, done <-chan struct{}, audit func(context.Context, *sale)) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	audits := make(chan struct{}, 1) // held while one is under way
	last := time.Now()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-done:
			over = true
		}
		r.sample(s, time.Now())
		if time.Since(last) >= auditEvery && !over {
			select {
			case audits <- struct{}{}:
				last = time.Now()
				r.tasks.Go(func() { defer func() { <-audits }(); audit(ctx, s) })
			default:
			}
		}
	}
	audits <- struct{}{}
	audit(context.WithoutCancel(ctx), s)
	r.end(s)
}

// sample takes what the lanes did since the last one.
func (r *Room) sample(s *sale, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range s.Lanes {
		p := sample{At: now.UnixMilli(), PerSecond: float64(len(l.recent)) / sampleEvery.Seconds()}
		if n := len(l.recent); n > 0 {
			slices.Sort(l.recent)
			p.P99 = milliseconds(l.recent[(n*99+99)/100-1])
		}
		l.recent = l.recent[:0]
		l.Samples = append(l.Samples, p)
		l.Samples = l.Samples[max(0, len(l.Samples)-samplesKept):]
	}
	r.notify()
}

// audit compares columns, ledger and orders of each lane.
func (r *Room) audit(ctx context.Context, s *sale) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, l := range s.Lanes {
		b := &books{At: time.Now()}
		if audits, err := r.books.Audit(ctx, l.SKU); err != nil {
			b.Error = err.Error()
		} else {
			a := audits[0]
			b.OnHand, b.Reserved, b.Accepted, b.Oversold, b.Undersold, b.Lost, b.Broken = a.OnHand, a.Reserved, a.Accepted(), a.Oversold(), a.Undersold(), a.LostUpdates(), a.Broken()
		}
		r.mu.Lock()
		l.Books = b
		r.notify()
		r.mu.Unlock()
	}
}
