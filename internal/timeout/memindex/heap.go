package memindex

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

const never = math.MaxInt64

// part is a shard. An id is pending at most once; it can be lent and pending at once.
type part struct {
	mu       sync.Mutex
	pending  map[string]*entry
	due      queue
	lent     map[lent]*entry
	claims   map[string]int // how often an id is lent
	ends     queue
	token    uint64
	complete bool
	wakes    []chan time.Time
}

// lent names a claim.
type lent struct {
	id    string
	token uint64
}

// entry is a hint in due, or a claim in ends.
type entry struct {
	id      string
	at      int64 // ms: what its heap is ordered by
	due     int64 // ms
	token   uint64
	attempt int
	place   int
}

// clear forgets all but the token, so that fences grow over a loss of data.
func (p *part) clear() {
	p.pending, p.lent, p.claims = map[string]*entry{}, map[lent]*entry{}, map[string]int{}
	p.due, p.ends, p.complete = nil, nil, false
}

func (p *part) head() int64 {
	if len(p.due) == 0 {
		return never
	}
	return p.due[0].at
}

// put says whether the hint is new. With keep a pending one stays as it is.
func (p *part) put(id string, at int64, keep bool) bool {
	if e, pending := p.pending[id]; pending {
		if !keep {
			e.due = at
			p.due.move(e, at)
		}
		return false
	}
	e := &entry{id: id, at: at, due: at}
	p.pending[id] = e
	heap.Push(&p.due, e)
	return true
}

// take lends what is due at now: first claims whose lease has ended.
func (p *part) take(now, end int64, limit int) []*entry {
	var taken []*entry
	for len(p.ends) > 0 && p.ends[0].at <= now && len(taken) < limit {
		e := p.ends[0]
		p.forget(e)
		taken = append(taken, e)
	}
	for len(p.due) > 0 && p.due[0].at <= now && len(taken) < limit {
		e := p.due[0]
		p.due.remove(e)
		delete(p.pending, e.id)
		taken = append(taken, e)
	}
	if len(taken) == 0 {
		return nil
	}
	p.token++
	kept := taken[:0]
	for _, e := range taken {
		e.token, e.at = p.token, end
		e.attempt++
		if _, twice := p.lent[lent{e.id, e.token}]; twice {
			continue // it was lent and pending: one claim serves for both
		}
		p.lent[lent{e.id, e.token}] = e
		p.claims[e.id]++
		heap.Push(&p.ends, e)
		kept = append(kept, e)
	}
	return kept
}

// forget ends a claim.
func (p *part) forget(e *entry) {
	p.ends.remove(e)
	delete(p.lent, lent{e.id, e.token})
	if p.claims[e.id]--; p.claims[e.id] <= 0 {
		delete(p.claims, e.id)
	}
}

// announce tells those who wait when the earliest moment has become earlier. Of
// several messages that nobody has read the last one remains, which is the earliest.
func (p *part) announce(before int64) {
	head := p.head()
	if head >= before {
		return
	}
	for _, c := range p.wakes {
		select {
		case <-c:
		default:
		}
		select {
		case c <- time.UnixMilli(head):
		default:
		}
	}
}

// queue is a heap of entries that know their places.
type queue []*entry

func (q *queue) remove(e *entry) { heap.Remove(q, e.place) }

func (q *queue) move(e *entry, at int64) {
	e.at = at
	heap.Fix(q, e.place)
}

// Len implements [heap.Interface].
func (q queue) Len() int { return len(q) }

// Less implements [heap.Interface].
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }

// Swap implements [heap.Interface].
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements [heap.Interface].
func (q *queue) Push(x any) {
	e, _ := x.(*entry) // only this file pushes
	e.place = len(*q)
	*q = append(*q, e)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
