package timeouttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/timeout"
)

func everyCallerGetsItsAnswer(t *testing.T, h IndexHarness) {
	const callers, each = 32, 20
	b := newBench(t, h)
	at := b.now().Add(time.Hour)
	b.put(at, series(callers*each/2)...) // the first half is there already
	var added atomic.Int64
	var wg sync.WaitGroup
	ids := series(callers * each)
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				n := i*each + j
				got, err := b.Schedule(b.ctx, b.kind, partition, j%2 == 0, []timeout.Entry{{ID: ids[n], At: at}})
				want := 0
				if n >= len(ids)/2 {
					want = 1
				}
				if err != nil || got != want {
					t.Errorf("Schedule of %s = %d, %v; want %d new", ids[n], got, err, want)
				}
				added.Add(int64(got))
			}
		})
	}
	wg.Wait()
	if want := int64(len(ids) / 2); added.Load() != want {
		t.Errorf("%d entries were new, want %d", added.Load(), want)
	}
	b.holds(len(ids))
}

func manyAtOnce(t *testing.T, h IndexHarness) {
	const n = 5000
	b := newBench(t, h)
	ids := series(n)
	b.put(b.now().Add(time.Hour), ids...)
	b.holds(n)
	b.put(b.now().Add(-time.Second), ids...)
	var claims []claimed
	for end := time.Now().Add(patient); len(claims) < n; {
		claims = append(claims, b.claim(100_000)...)
		if time.Now().After(end) {
			t.Fatalf("%d of %d timers are claimed", len(claims), n)
		}
	}
	b.holds(0)
	b.put(b.now().Add(time.Hour), ids...)
	if err := b.Remove(b.ctx, b.kind, partition, ids); err != nil {
		t.Errorf("Remove = %v", err)
	}
	b.holds(0)
}

func kindsAndPartitionsAreApart(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	other := b
	other.kind = b.kind[:20]
	now := b.now()
	b.put(now, "x")
	other.put(now, "x")
	if _, err := b.Schedule(b.ctx, b.kind, "canary", false, []timeout.Entry{{ID: "x", At: now}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []bench{b, other} {
		if got := b.claim(10); len(got) != 1 {
			t.Errorf("claimed %v, want one", got)
		}
		b.complete()
		b.holds(0)
	}
	if n, err := b.Pending(b.ctx, b.kind, "canary"); err != nil || n != 1 {
		t.Errorf("Pending of the other partition = %d, %v; want 1", n, err)
	}
	for _, s := range b.Shards(b.kind, "canary") {
		if c, err := b.Claim(b.ctx, s, 10); err != nil || !c.Wiped {
			t.Errorf("Claim = %+v, %v; the other partition was not completed", c, err)
		}
	}
}

func shardsStay(t *testing.T, h IndexHarness) {
	clients := benches(t, h, 2)
	a := clients[0].Shards(clients[0].kind, partition)
	for _, b := range clients {
		if diff := cmp.Diff(a, b.Shards(b.kind, partition)); diff != "" {
			t.Errorf("shards (-first +later):\n%s", diff)
		}
	}
	seen := map[timeout.Shard]bool{}
	for _, s := range a {
		if s.Kind != clients[0].kind || s.Partition != partition || seen[s] {
			t.Errorf("shard %+v among %v", s, a)
		}
		seen[s] = true
	}
}

func idsAreText(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	want := []string{
		"0", "007", "1e3", "-5", "9007199254740993", "123456789012345678901234567890", "nan", "inf", "0x10",
		"a|b", "|", "1|2|3|4", "{x}", "}", "%d%s", "\\", "'\"", "NX", "WITHSCORES", strings.Repeat("~", 64),
	}
	for i := range 20 {
		want = append(want, fmt.Sprint(1763640000000+i))
	}
	slices.Sort(want)
	b.put(b.now(), want...)
	if diff := cmp.Diff(want, names(b.await(len(want)))); diff != "" {
		t.Errorf("ids (-scheduled +claimed):\n%s", diff)
	}
	b.put(b.now().Add(time.Hour), want...)
	if err := b.Remove(b.ctx, b.kind, partition, want); err != nil {
		t.Fatal(err)
	}
	b.holds(0)
}
