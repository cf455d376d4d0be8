package timeouttest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func oneClaimGetsAHint(t *testing.T, h IndexHarness) {
	const claimers, n = 8, 2000
	clients := benches(t, h, claimers)
	clients[0].put(clients[0].now().Add(-time.Second), series(n)...)
	got := make([][]claimed, claimers)
	var wg sync.WaitGroup
	for i, b := range clients {
		wg.Go(func() {
			for _, s := range b.Shards(b.kind, partition) {
				for {
					c, err := b.Claim(b.ctx, s, 16)
					if err != nil {
						t.Errorf("Claim = %v", err)
						return
					}
					if len(c.Timers) == 0 {
						break
					}
					for _, timer := range c.Timers {
						got[i] = append(got[i], claimed{timer, s})
					}
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(series(n), names(slices.Concat(got...))); diff != "" {
		t.Errorf("claimed (-scheduled +got):\n%s", diff)
	}
}

func claimedIsGone(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	b.put(b.now(), "x")
	b.await(1)
	b.holds(0)
	at := b.now().Add(-time.Second)
	b.put(at, "x") // nothing is known of the claim: it is new again
	if got := b.await(1); !got[0].At.Equal(at) {
		t.Errorf("claimed %+v, want the new moment %v", got[0].Entry, at)
	}
}
