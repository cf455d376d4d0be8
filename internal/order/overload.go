package order

import (
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/stock"
)

const (
	fewest = 2 // orders in flight under every load
	spare  = 3 // more for orders of SKUs of which none is in flight

	// gain is how many times the bandwidth-delay product may be in flight, as in BBR.
	gain = 2

	// sharedGain is gain for orders that share a transaction. An order that waits for the previous transaction, and
	// for others after it, takes up to two and a half times as long as a single one, however many share it. So gain
	// would never admit more of them.
	sharedGain = 3

	// drainEvery is how long an overloaded service does without an order that is alone. Then it waits for one, for twice the latency, and at
	// least for drainFor. With the fewest in flight it looks more often: if it works on many at once, it has become slower, and its latency
	// alone is known no more.
	drainEvery       = 10 * time.Second
	drainFewestEvery = time.Second
	drainFor         = 500 * time.Millisecond
	longestDrain     = 2 * time.Second

	// A burst after a calm finds places for as many orders as a service that works on one at a time serves within burst, and for
	// leastBurst at least: nothing is known of how many are served at once.
	burst      = time.Second
	leastBurst = 32
)

// overload bounds, by its measurements, how many orders this instance places at once: all orders, or those of one
// popular SKU. The bound is a multiple of the bandwidth-delay product, as in BBR (Cardwell et al., ACM Queue 14(5),
// 2016). Here this is the rate of answers times the latency of an order that begins alone. By Little's law the product
// is how many orders are served at once. More of them only wait. So the bound lets as many orders queue as are in
// service, or twice as many of those that share.
//
// The latency of an order that is not alone does not count. Such an order may wait long for a popular SKU while the
// service is idle. The rate is measured as BBR does: answers during an order, over its latency.
//
// The bound falls only while orders are refused, first for want of permits and then by the bound itself. It grows by one for each
// latency in which nothing is in flight, up to what a burst after a calm may have. The zero value bounds nothing before an order
// has begun alone and is placed.
type overload struct {
	mu       sync.Mutex
	limit    float64
	latency  time.Duration // mean of the latest orders
	alone    time.Duration // mean of the latest orders that began alone; 0: unknown
	last     time.Duration // of the latest order that began alone
	inFlight int           // without those that are blocked
	firsts   int           // of them, those that were the first of their SKUs
	idle     time.Time     // when inFlight became 0
	drained  time.Time     // when an order that began alone has ended
	answers  int           // since the beginning
	refusals int           // since drained
}

// flight is an order in flight, as one bound counts it.
type flight struct {
	of                *overload
	began             time.Time
	answers, refusals int // of the service when the order began
	first, alone      bool
	shares            bool          // a transaction with others that wait at the same time
	blocked           time.Time     // since when it is not counted, as it waits for a lease or a locked row; zero: it is
	waited            time.Duration // for such, earlier
	over              bool          // it has left, though its order may still be in the queue
}

// enter counts an order that begins now, or returns nil if there are too many: more than most, or than the service can do. first says that no
// order of its SKUs is in flight. It does not block.
func (o *overload) enter(first bool, most int) *flight {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.limit = o.bound(now, most)
	if o.inFlight == 0 {
		o.idle = now
	}
	room, every := int(o.limit), drainEvery
	if room <= fewest && most > fewest {
		every = drainFewestEvery
	}
	if late := now.Sub(o.drained) - every; late > min(max(drainFor, 2*o.latency), longestDrain) {
		o.drained, o.refusals = now, 0
	} else if late > 0 && o.refusals > 0 {
		room = 1
	}
	if o.inFlight >= room && (!first || o.firsts >= spare) {
		o.refusals++
		return nil
	}
	f := &flight{of: o, began: now, answers: o.answers, refusals: o.refusals, first: first, alone: o.inFlight == 0}
	o.count(first, 1, now)
	return f
}

// bound returns the present bound, which is most at most. It is called with mu held.
func (o *overload) bound(now time.Time, most int) float64 {
	bound := o.limit
	switch {
	case o.alone == 0:
		return float64(most)
	case o.inFlight == 0:
		bound = max(bound, min(bound+float64(now.Sub(o.idle)/o.alone), o.calm()))
	}
	return min(bound, float64(most))
}

// calm returns the bound for a burst after a calm.
func (o *overload) calm() float64 { return max(leastBurst, float64(burst/o.alone)) }

// usable returns how many orders may be in flight.
func (o *overload) usable(most int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int(o.bound(time.Now(), most))
}

// ofSKU returns a bound for the orders of one SKU, which begins with what o has measured.
func (o *overload) ofSKU() *overload {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	sku := &overload{latency: o.latency, alone: o.alone, idle: now, drained: now}
	if o.alone > 0 {
		sku.limit = o.calm()
	}
	return sku
}

// begin says that the order of f has all that the instance gives it. Its latency counts from now on.
func (f *flight) begin() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.began, f.answers, f.refusals = time.Now(), f.of.answers, f.of.refusals
}

// block says whether the order of f waits for a lease or a locked row. It does not count meanwhile, as it says nothing about the service.
// f may be nil.
func (f *flight) block(waits bool) {
	if f == nil {
		return
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	switch now := time.Now(); {
	case f.over, waits == !f.blocked.IsZero():
	case waits:
		f.blocked = now
		f.of.count(f.first, -1, now)
	default:
		f.waited, f.blocked = f.waited+now.Sub(f.blocked), time.Time{}
		f.of.count(f.first, 1, now)
	}
}

// leave ends what enter began.
func (f *flight) leave() {
	o, now := f.of, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	f.over = true
	if f.alone {
		o.drained, o.refusals = now, 0
	}
	if f.blocked.IsZero() {
		o.count(f.first, -1, now)
	}
}

// count counts one order more or less. It is called with mu held.
func (o *overload) count(first bool, more int, now time.Time) {
	if first {
		o.firsts += more
	}
	if o.inFlight += more; o.inFlight == 0 {
		o.idle = now
	}
}

// refused says that an order was refused for want of a permit. It is a sign of overload if those that are answered take long, and
// otherwise one of orders that wait for something of their own.
func (o *overload) refused() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latency > 2*o.alone {
		o.refusals++
	}
}

// answered says that the service has placed the order of f, or refused it with err. It measures.
func (f *flight) answered(err error) {
	if errors.Is(err, stock.ErrBusy) {
		return
	}
	o := f.of
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	took := time.Since(f.began) - f.waited
	if !f.blocked.IsZero() {
		took -= time.Since(f.blocked)
	}
	took = max(1, took)
	o.latency += (took - o.latency) / 8
	switch {
	case !f.alone || err != nil: // a refusal is quicker than an order
	case o.alone == 0:
		o.alone = took
		o.limit = min(o.limit, o.calm())
	case min(took, o.last) > 2*o.alone: // the service has become slower
		o.alone, o.last = min(took, o.last), took
	default: // one that took very long counts for little, and is soon forgotten
		o.alone, o.last = min(o.alone+(min(took, 2*o.alone)-o.alone)/4, 2*took), took
	}
	factor := float64(gain)
	if f.shares {
		factor = sharedGain
	}
	limit := factor * float64(o.answers-f.answers) * float64(o.alone) / float64(took)
	if limit > o.limit || o.refusals > f.refusals {
		o.limit = max(fewest, o.limit+(limit-o.limit)/8)
	}
}
