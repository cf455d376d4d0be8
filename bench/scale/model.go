package main

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Costs are the parameters of the model. All come from measured runs of one instance. Times are seconds.
type Costs struct {
	Order       map[string]float64 `json:"order"`       // processor time of an order, by kind of process
	Transaction map[string]float64 `json:"transaction"` // processor time of a transaction of one SKU alongside that of its orders
	Row         map[string]float64 `json:"row"`         // processor time of each other SKU in a transaction
	Inside      float64            `json:"inside"`      // the share of the service's time of an order that its transaction takes
	Wait        float64            `json:"wait"`        // for which a transaction waits without a processor: the flush, the wake-ups
}

// The rules of the queue of an instance, as package order has them.
const (
	maxShared  = 256   // orders of a transaction
	manyOrders = 32    // that do not wait for others
	longest    = 0.010 // for which fewer wait
)

// Setup is what is simulated: a closed loop of buyers without a pause.
type Setup struct {
	Instances int
	Buyers    int // over all instances
	SKUs      int
	Zipf      float64 // exponent of the popularity of SKUs; 0: the buyers take turns
	Cores     float64 // of each machine
	Writers   int     // machines of the database, each with a part of the SKUs; 0: one machine has everything
	Across    float64 // share of the orders that also buy a SKU of another writer, in a two-phase commit
	Routed    bool    // the orders of a SKU go to one instance; otherwise to any
	Network   float64 // round trip between two machines
	Flush     float64 // of a COMMIT to a disk
	WarmUp    float64 // seconds before those that count
	Seconds   float64 // that count
}

// Result is what the simulation says.
type Result struct {
	OrdersPerSecond float64 `json:"orders_per_second"`
	P50             float64 `json:"p50_ms"`
	Batch           float64 `json:"orders_per_transaction"`
	Busiest         float64 `json:"busiest_writer"` // share of the processors that the busiest writer uses
}

type simulation struct {
	Setup
	Costs
	*clock
	random  *rand.Rand
	shares  []float64 // of the SKUs up to each
	load    *process  // of the buyers; nil: they have machines of their own
	writers []*writer
	shops   []*instance

	placed, orders, transactions int64
	latencies                    []float64
	turn                         int
	counts                       bool
}

// writer is a server of the database.
type writer struct {
	proc *process
	rows rows
	used float64 // processor time
}

// instance is one of the service, with a queue for each writer.
type instance struct {
	*simulation
	shop, redis *process
	queues      []queue
}

type queue struct {
	waiting []*buying
	open    bool
}

// buying is an order in flight.
type buying struct {
	skus  []int
	begun float64
	done  func()
}

// Simulate runs a setup. The same seed has the same result.
func Simulate(c Costs, s Setup, seed uint64) Result {
	m := &simulation{Setup: s, Costs: c, clock: &clock{}, random: rand.New(rand.NewPCG(seed, 1))}
	m.popularity()
	m.build()
	m.until(s.WarmUp)
	m.counts = true
	for _, w := range m.writers {
		w.used = 0
	}
	m.until(s.WarmUp + s.Seconds)
	r := Result{OrdersPerSecond: float64(m.placed) / s.Seconds}
	if m.transactions > 0 {
		r.Batch = float64(m.orders) / float64(m.transactions)
	}
	for _, w := range m.writers {
		r.Busiest = max(r.Busiest, w.used/s.Seconds/w.proc.on.cores)
	}
	if n := len(m.latencies); n > 0 {
		slices.Sort(m.latencies)
		r.P50 = m.latencies[n/2] * 1000
	}
	return r
}

func (m *simulation) build() {
	host := func() *machine { return &machine{clock: m.clock, cores: m.Cores} }
	everything := host()
	place := func() *machine {
		if m.Writers == 0 {
			return everything
		}
		return host()
	}
	threads := max(1, int(math.Ceil(m.Cores)))
	if m.Writers == 0 {
		m.load = &process{on: everything, threads: threads}
	}
	for range max(1, m.Writers) {
		m.writers = append(m.writers, &writer{proc: &process{on: place(), threads: math.MaxInt}, rows: rows{}})
	}
	redis := &process{on: everything, threads: 1}
	for range m.Instances {
		on := place()
		in := &instance{simulation: m, shop: &process{on: on, threads: threads}, redis: redis}
		if m.Writers > 0 {
			in.redis = &process{on: on, threads: 1}
		}
		in.queues = make([]queue, len(m.writers))
		m.shops = append(m.shops, in)
	}
	for b := range m.Buyers {
		m.after(m.random.Float64()*0.001, func() { m.buy(b) })
	}
}

// popularity prepares the choice of SKUs: the share of the n-th is that of 1/n to the power of the exponent.
func (m *simulation) popularity() {
	if m.Zipf == 0 {
		return
	}
	m.shares = make([]float64, m.SKUs)
	sum := 0.0
	for i := range m.shares {
		sum += math.Pow(float64(i+1), -m.Zipf)
		m.shares[i] = sum
	}
}

// choose returns a SKU.
func (m *simulation) choose() int {
	if m.Zipf == 0 {
		m.turn++
		return m.turn % m.SKUs
	}
	return min(m.SKUs-1, sort.SearchFloat64s(m.shares, m.random.Float64()*m.shares[m.SKUs-1]))
}

// of returns the writer that has a SKU. Popular ones are spread.
func (m *simulation) of(sku int) int { return sku % len(m.writers) }

// buy is one order of a buyer, and then the next.
func (m *simulation) buy(buyer int) {
	o := &buying{begun: m.now, skus: []int{m.choose()}}
	if m.Across > 0 && m.random.Float64() < m.Across {
		for range 100 { // one writer may have nearly all that is wanted
			if other := m.choose(); m.of(other) != m.of(o.skus[0]) {
				o.skus = append(o.skus, other)
				break
			}
		}
	}
	in := m.shops[buyer%len(m.shops)]
	if m.Routed {
		in = m.shops[o.skus[0]%len(m.shops)]
	}
	outside := m.Order["shop"] * (1 - m.Inside) / 2
	o.done = func() {
		in.redis.run(m.Order["redis"], func() {})
		in.shop.run(outside, func() {
			if m.counts {
				m.placed++
				m.latencies = append(m.latencies, m.now-o.begun)
			}
			m.buy(buyer)
		})
	}
	ask := func() { in.shop.run(outside, func() { in.join(o) }) }
	if m.load == nil {
		ask()
		return
	}
	m.load.run(m.Order["load"], ask)
}

// join puts an order into the queue of its writer, or commits it alone if it has two.
func (in *instance) join(o *buying) {
	if len(o.skus) > 1 {
		in.commit([]*buying{o}, func(float64) {})
		return
	}
	q := &in.queues[in.of(o.skus[0])]
	q.waiting = append(q.waiting, o)
	in.begin(q)
}

// begin commits the orders that wait, if no transaction of theirs is open.
func (in *instance) begin(q *queue) {
	if q.open || len(q.waiting) == 0 {
		return
	}
	n := min(maxShared, len(q.waiting))
	batch := slices.Clone(q.waiting[:n])
	q.waiting = q.waiting[n:]
	q.open = true
	in.commit(batch, func(took float64) {
		next := func() {
			q.open = false
			in.begin(q)
		}
		if waiting := len(q.waiting); n > 1 && 0 < waiting && waiting < manyOrders {
			in.after(min(took/2, longest), next)
			return
		}
		next()
	})
}

// commit is a transaction. Its rows stay locked from the first statement until the end of the flush. With two writers,
// each has its share, and each flushes what it has prepared before the commit.
func (in *instance) commit(batch []*buying, over func(took float64)) {
	began := in.now
	skus := map[int]bool{}
	for _, o := range batch {
		for _, sku := range o.skus {
			skus[sku] = true
		}
	}
	locked := slices.Sorted(maps.Keys(skus))
	w := in.writers[in.of(locked[0])]
	parties := []*writer{w}
	for _, sku := range locked {
		if p := in.writers[in.of(sku)]; p != w {
			parties = append(parties, p)
		}
	}
	n := float64(len(batch))
	end := func() {
		for _, sku := range locked {
			in.writers[in.of(sku)].rows.unlock([]int{sku})
		}
		if in.counts {
			in.transactions++
			in.orders += int64(len(batch))
		}
		in.redis.run(in.Transaction["redis"], func() {})
		for _, o := range batch {
			o.done()
		}
		over(in.now - began)
	}
	more := float64(len(locked) - len(parties)) // rows
	shop := n*in.Order["shop"]*in.Inside + float64(len(parties))*in.Transaction["shop"] + more*in.Row["shop"]
	flush := func() {
		in.after(float64(len(parties))*(in.Wait*(1-first)+in.Flush+2*in.Network), end)
	}
	store := func() {
		left := len(parties)
		for _, p := range parties {
			in.at(p, in.Transaction["mariadb"]*(1-first)+n*in.Order["mariadb"]+more*in.Row["mariadb"], func() {
				if left--; left == 0 {
					flush()
				}
			})
		}
	}
	lock := func() {
		in.after(in.Network+in.Wait*first, func() {
			in.lock(locked, func() { in.shop.run(shop*(1-first), store) })
		})
	}
	in.shop.run(shop*first, func() { in.at(w, in.Transaction["mariadb"]*first*float64(len(parties)), lock) })
}

// first is the part of a transaction before its rows are locked: a lock is the answer to the first of three round trips.
const first = 1.0 / 3

// at has a writer work.
func (in *instance) at(w *writer, work float64, done func()) {
	if in.counts {
		w.used += work
	}
	w.proc.run(work, done)
}

// lock locks SKUs at their writers, one after the other in the order of all transactions.
func (in *instance) lock(skus []int, done func()) {
	if len(skus) == 0 {
		done()
		return
	}
	in.writers[in.of(skus[0])].rows.lock(skus[:1], func() { in.lock(skus[1:], done) })
}
