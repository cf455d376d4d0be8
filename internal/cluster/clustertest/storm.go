package clustertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
)

// Storm lets instances that watch the members join, one every ten milliseconds, so that each can read the list after
// each join. It returns how long it took until each had seen all, and by how much count grew meanwhile. count returns
// how many requests the store has received.
func Storm(t testing.TB, instances []cluster.Membership, count func() int) (seen time.Duration, requests int) {
	t.Helper()
	var (
		names    []string
		watchers []*Watcher[cluster.View]
	)
	for k, i := range instances {
		names = append(names, fmt.Sprintf("m%04d", k))
		watchers = append(watchers, Follow(t, i.Members))
	}
	for _, w := range watchers {
		w.Until(t, "nobody", Lists())
	}
	before, start := count(), time.Now()
	presences := make([]*cluster.Presence, len(instances))
	var joining sync.WaitGroup
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for k, i := range instances {
		<-pace.C
		joining.Go(func() {
			var err error
			if presences[k], err = i.Join(t.Context(), member(names[k])); err != nil {
				t.Error(err)
			}
		})
	}
	joining.Wait()
	joined := time.Since(start)
	for _, w := range watchers {
		w.Until(t, "all", Lists(names...))
	}
	seen, requests = time.Since(start), count()-before
	steps := 0
	for _, w := range watchers {
		_, n, _ := w.Now()
		steps += n
	}
	t.Logf("%d members have joined after %v; all have seen all after %v, in %d steps, with %d requests",
		len(instances), joined, seen, steps, requests)
	for _, p := range presences {
		if p != nil {
			t.Cleanup(func() { _ = p.Leave(t.Context()) })
		}
	}
	return seen, requests
}
