package memindex

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

const never = math.MaxInt64

// part is a shard.
type part struct {
	mu      sync.Mutex
	pending map[string]*entry
	due     queue
	passed  time.Time // when the last pass was granted
	wakes   []chan time.Time
}

// entry is a timer in the heap.
type entry struct {
	id    string
	at    int64 // ms
	place int
}

// clear removes everything.
func (p *part) clear() { p.pending, p.due, p.passed = map[string]*entry{}, nil, time.Time{} }

func (p *part) head() int64 {
	if len(p.due) == 0 {
		return never
	}
	return p.due[0].at
}

// put adds an entry. One that is there keeps the earlier moment.
func (p *part) put(id string, at int64) {
	if e, pending := p.pending[id]; pending {
		if at < e.at {
			e.at = at
			heap.Fix(&p.due, e.place)
		}
		return
	}
	e := &entry{id: id, at: at}
	p.pending[id] = e
	heap.Push(&p.due, e)
}

// take removes what is due at now.
func (p *part) take(now int64, limit int) (taken []*entry) {
	for len(p.due) > 0 && p.due[0].at <= now && len(taken) < limit {
		e, _ := heap.Pop(&p.due).(*entry) // only this file pushes
		delete(p.pending, e.id)
		taken = append(taken, e)
	}
	return taken
}

// announce sends the earliest moment to the consumers if it has become earlier. Of
// several unread messages the last one remains, which is the earliest.
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

// queue is a heap of entries.
type queue []*entry

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
