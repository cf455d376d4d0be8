package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	basket = 5                     // orders in one transaction
	beat   = 10 * time.Millisecond // between two of them
	least  = 300 * time.Millisecond
	spread = time.Second
)

// start runs an instance in this process until the test ends, or what it returns is called.
func (w *world) start(cfg nodeConfig) (n *node, stop func()) {
	w.t.Helper()
	cfg.Database = w.database
	if cfg.Redis == "" {
		cfg.Redis = w.address
	}
	n, err := newNode(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return n, w.run(n)
}

// run runs n until the end of the test, or until what it returns is called, and closes it.
func (w *world) run(n *node) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run = %v", err)
		}
		n.close()
	})
	w.t.Cleanup(stop)
	return stop
}

// load places orders at a steady pace, each to expire within a second or so. The pace
// may lag on a slow machine; the number is what counts. It returns how many there are.
func (w *world) load(n *node, orders int) int {
	pace := time.NewTicker(beat)
	defer pace.Stop()
	for i := 0; i < orders; i += basket {
		<-pace.C
		ids := names(fmt.Sprintf("o-%06d", i), basket)
		if err := n.place(w.t.Context(), i/basket%shelves, time.Now().Add(least+rand.N(spread)), ids...); err != nil {
			w.t.Errorf("an order is refused: %v", err)
			return i
		}
	}
	return (orders + basket - 1) / basket * basket
}

// during does harm repeatedly, at least once, while orders come in. It returns how many orders were placed and how
// often there was harm.
func (w *world) during(n *node, orders int, every time.Duration, harm func()) (placed, times int) {
	w.t.Helper()
	loaded := make(chan int, 1)
	go func() { loaded <- w.load(n, orders) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case placed = <-loaded:
			if times == 0 {
				w.t.Fatal("the orders were placed before anything went wrong")
			}
			return placed, times
		case <-tick.C:
			harm()
			times++
		}
	}
}

// names returns n ids that begin alike.
func names(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return ids
}
