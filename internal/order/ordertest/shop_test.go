package ordertest_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/ordertest"
	"example.com/shop/internal/stock"
)

// flaw is what a shop does wrong.
type flaw string

const (
	none        flaw = "none"
	startTime   flaw = "a payment is judged by the time when it began"
	plainRead   flaw = "a reader does not wait for a payment that is under way"
	laterLevel  flaw = "a refusal shows a level that was read later"
	plainLevel  flaw = "units are taken by a level that was read before"
	uncounted   flaw = "a limit does not count a payment that is under way"
	lostPayment flaw = "an expiry overwrites a payment"
)

// shop sells one SKU, and takes its time for everything.
type shop struct {
	flaw
	h       *ordertest.History
	limit   int64
	expires sync.WaitGroup

	customers sync.Map // to a chan struct{}: whose order is being placed

	mu    sync.Mutex
	units int64
	rows  map[string]*row
}

type row struct {
	lock  chan struct{} // has room for whoever changes the order
	order order.Order   // guarded by shop.mu
}

func work() { time.Sleep(rand.N(20 * time.Millisecond)) }

func (s *shop) row(id string) *row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id]
}

func (s *shop) get(r *row) order.Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.order
}

// asOf returns how o reads at a moment.
func asOf(o order.Order, now time.Time) order.Order {
	if o.Status == order.Pending && !now.Before(o.ExpiresAt) {
		o.Status = order.Expired
	}
	return o
}

func (s *shop) Place(_ context.Context, p order.Purchase) (order.Order, error) {
	work()
	lock, _ := s.customers.LoadOrStore(p.Customer, make(chan struct{}, 1))
	lock.(chan struct{}) <- struct{}{}
	defer func() { <-lock.(chan struct{}) }()
	q := p.Items[0].Quantity
	if had := s.had(p.Customer); had+q > s.limit {
		return order.Order{}, &order.LimitError{SKU: "a", Limit: s.limit, Had: had}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := func() {
		s.mu.Unlock()
		work()
		s.mu.Lock()
	}
	enough := s.units >= q
	if s.flaw == plainLevel || s.flaw == laterLevel && !enough {
		pause()
	}
	if !enough {
		return order.Order{}, &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "a", Requested: q, Available: s.units}}}
	}
	s.units -= q
	r := &row{lock: make(chan struct{}, 1), order: order.Order{
		ID: order.NewID(), CustomerID: p.Customer, Items: p.Items, Status: order.Pending, ExpiresAt: time.Now().Add(100 * time.Millisecond),
	}}
	s.rows[r.order.ID] = r
	s.expires.Go(func() { s.expire(r) })
	return r.order, nil
}

// had returns how many units the customer has, while no other call places an order of that customer. It waits for orders that are late, as
// they may be changed until then. Others become late while it waits.
func (s *shop) had(customer string) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := make(map[*row]bool) // which cannot be changed any more
	for {
		n = 0
		var late *row
		now := time.Now()
		for _, r := range s.rows {
			o := asOf(r.order, now)
			switch {
			case o.CustomerID != customer:
			case s.flaw != uncounted && !ended[r] && o.Status != r.order.Status:
				late = r
			case o.Status == order.Pending, o.Status == order.Confirmed:
				n += o.Items[0].Quantity
			}
		}
		if late == nil {
			return n
		}
		s.mu.Unlock()
		late.lock <- struct{}{}
		<-late.lock
		ended[late] = true
		s.mu.Lock()
	}
}

// change gives an order another status, if it is pending.
func (s *shop) change(id string, set func(*order.Order)) (order.Order, error) {
	began := time.Now()
	work()
	r := s.row(id)
	r.lock <- struct{}{}
	defer func() { <-r.lock }()
	now := time.Now()
	if s.flaw == startTime {
		now = began
	}
	if o := asOf(s.get(r), now); o.Status != order.Pending {
		return order.Order{}, &order.StateError{Order: o}
	}
	work()
	s.mu.Lock()
	defer s.mu.Unlock()
	set(&r.order)
	if r.order.Status == order.Cancelled {
		s.units += r.order.Items[0].Quantity
	}
	return r.order, nil
}

func (s *shop) Pay(_ context.Context, t order.Target, payment string) (order.Order, error) {
	return s.change(t.ID, func(o *order.Order) { o.Status, o.PaymentID = order.Confirmed, payment })
}

func (s *shop) Cancel(_ context.Context, t order.Target) (order.Order, error) {
	return s.change(t.ID, func(o *order.Order) { o.Status = order.Cancelled })
}

func (s *shop) Extend(_ context.Context, t order.Target, by time.Duration) (order.Order, error) {
	return s.change(t.ID, func(o *order.Order) { o.ExpiresAt = o.ExpiresAt.Add(by) })
}

func (s *shop) Order(_ context.Context, id, _ string) (order.Order, error) {
	work()
	r := s.row(id)
	if o := s.get(r); s.flaw != plainRead && asOf(o, time.Now()).Status != o.Status {
		r.lock <- struct{}{}
		defer func() { <-r.lock }()
	}
	return asOf(s.get(r), time.Now()), nil
}

func (s *shop) Orders(ctx context.Context, f order.Filter) (order.Page, error) {
	o, err := s.Order(ctx, f.Before, "")
	return order.Page{Orders: []order.Order{o}}, err
}

// expire waits until r has expired, and gives its units back.
func (s *shop) expire(r *row) {
	for {
		o := s.get(r)
		time.Sleep(time.Until(o.ExpiresAt) + time.Microsecond)
		work()
		if s.flaw != lostPayment {
			r.lock <- struct{}{}
		}
		o = s.get(r)
		done := o.Status != order.Pending
		work()
		if !done && !time.Now().Before(o.ExpiresAt) {
			s.mu.Lock()
			r.order.Status, done = order.Expired, true
			s.units += o.Items[0].Quantity
			o = r.order
			s.mu.Unlock()
			s.h.Changed(o)
		}
		if s.flaw != lostPayment {
			<-r.lock
		}
		if done {
			return
		}
	}
}
