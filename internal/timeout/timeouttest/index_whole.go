package timeouttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/timeout"
)

func callersShareAnIndex(t *testing.T, h IndexHarness) {
	const callers, each = 32, 20
	b := newBench(t, h)
	at := b.now().Add(time.Hour)
	ids := series(callers * each)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				n := i*each + j
				if err := b.Schedule(b.ctx, b.kind, partition, []timeout.Entry{{ID: ids[n], At: at}, {ID: ids[n/2], At: at}}); err != nil {
					t.Errorf("Schedule of %s = %v", ids[n], err)
				}
			}
		})
	}
	wg.Wait()
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
}

func kindsAndPartitionsAreApart(t *testing.T, h IndexHarness) {
	b := newBench(t, h)
	other := b
	other.kind = b.kind[:20]
	now := b.now()
	b.put(now, "x")
	other.put(now, "x")
	if err := b.Schedule(b.ctx, b.kind, "canary", []timeout.Entry{{ID: "x", At: now}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []bench{b, other} {
		if got := b.claim(10); len(got) != 1 {
			t.Errorf("claimed %v, want one", got)
		}
		b.holds(0)
	}
	if n, err := b.Pending(b.ctx, b.kind, "canary"); err != nil || n != 1 {
		t.Errorf("Pending of the other partition = %d, %v; want 1", n, err)
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
}
