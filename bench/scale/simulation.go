package main

import (
	"container/heap"
	"math"
)

// clock is a simulation of discrete events. Times are seconds.
type clock struct {
	now    float64
	events events
	seq    int64
}

type event struct {
	at  float64
	seq int64 // events at the same time happen in the order in which they were planned
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) } //nolint:errcheck,forcetypeassert // only events
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (c *clock) after(d float64, do func()) {
	c.seq++
	heap.Push(&c.events, event{at: c.now + d, seq: c.seq, do: do})
}

// until runs the events up to a time.
func (c *clock) until(end float64) {
	for len(c.events) > 0 && c.events[0].at <= end {
		e := heap.Pop(&c.events).(event) //nolint:errcheck,forcetypeassert // only events
		c.now = e.at
		e.do()
	}
	c.now = end
}

// machine has processors that its threads share: each gets as much as the others, and one processor at most.
type machine struct {
	clock *clock
	cores float64

	threads events  // at is the work of a thread that began at 0, in seconds of a processor
	worked  float64 // by each thread, had it begun at 0
	since   float64 // the time to which worked belongs
	version int64   // of the threads; a planned end of an earlier one does not happen
}

func (m *machine) rate() float64 { return math.Min(1, m.cores/float64(len(m.threads))) }

func (m *machine) advance() {
	if len(m.threads) > 0 {
		m.worked += (m.clock.now - m.since) * m.rate()
	}
	m.since = m.clock.now
}

// run has a thread work, and then calls done.
func (m *machine) run(work float64, done func()) {
	m.advance()
	m.clock.seq++
	heap.Push(&m.threads, event{at: m.worked + work, seq: m.clock.seq, do: done})
	m.plan()
}

// plan plans the end of the thread that ends first.
func (m *machine) plan() {
	m.version++
	if len(m.threads) == 0 {
		return
	}
	version := m.version
	m.clock.after(max(0, (m.threads[0].at-m.worked)/m.rate()), func() {
		if version != m.version {
			return
		}
		m.advance()
		e := heap.Pop(&m.threads).(event) //nolint:errcheck,forcetypeassert // only events
		m.plan()
		e.do()
	})
}

// process has as many threads as processors, as a Go program, or one. Its work waits in a queue for a thread.
type process struct {
	on      *machine
	threads int
	busy    int
	queue   []func()
}

func (p *process) run(work float64, done func()) {
	if work <= 0 {
		done()
		return
	}
	start := func() {
		p.on.run(work, func() {
			p.busy--
			if len(p.queue) > 0 {
				next := p.queue[0]
				p.queue = p.queue[1:]
				p.busy++
				next()
			}
			done()
		})
	}
	if p.busy == p.threads {
		p.queue = append(p.queue, start)
		return
	}
	p.busy++
	start()
}

// rows are the rows of the SKUs. A transaction keeps a row locked until its end; others wait in order of arrival.
type rows map[int]*[]func()

// lock locks skus one after the other, and then calls done.
func (r rows) lock(skus []int, done func()) {
	if len(skus) == 0 {
		done()
		return
	}
	next := func() { r.lock(skus[1:], done) }
	if waiting, locked := r[skus[0]]; locked {
		*waiting = append(*waiting, next)
		return
	}
	r[skus[0]] = new([]func())
	next()
}

func (r rows) unlock(skus []int) {
	for _, sku := range skus {
		waiting := r[sku]
		if len(*waiting) == 0 {
			delete(r, sku)
			continue
		}
		next := (*waiting)[0]
		*waiting = (*waiting)[1:]
		next()
	}
}
