package timeouttest

import (
	"context"
	"testing"
	"time"
)

func wakeTellsTheHead(t *testing.T, h IndexHarness) {
	clients := benches(t, h, 2)
	run := clients[0].running(t)
	defer run()
	s := clients[0].Shards(clients[0].kind, partition)
	wakes := make(chan time.Time)
	for _, shard := range s {
		wake := clients[0].Wake(shard)
		if wake == nil {
			t.Skip("there are no messages")
		}
		go func() {
			for {
				select {
				case at := <-wake:
					select {
					case wakes <- at:
					case <-clients[0].ctx.Done():
						return
					}
				case <-t.Context().Done():
					return
				}
			}
		}()
	}
	// A message may be lost, so that one of many, each of a new head, is enough.
	at := clients[1].now().Add(time.Hour).Truncate(time.Millisecond)
	for end := time.Now().Add(patient); time.Now().Before(end); at = at.Add(-time.Second) {
		clients[1].put(at, "x")
		select {
		case got := <-wakes:
			if got.Before(at) || got.After(at.Add(time.Hour)) {
				t.Errorf("received %v, want %v or a little later", got, at)
			}
			return
		case <-time.After(10 * pause):
		}
	}
	t.Errorf("no head received for %v", patient)
}

// running runs the index until the test calls what it returns.
func (b bench) running(t *testing.T) func() {
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil at the end of its context", err)
		}
	}
}
