package timeouttest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// pages reads all of a filter by keyset, limit by limit.
func (c StoreClient) pages(ctx context.Context, t *testing.T, f timeout.Filter) []timeout.Row {
	t.Helper()
	var all []timeout.Row
	for {
		rows := c.list(ctx, t, f)
		if len(rows) > f.Limit {
			t.Fatalf("a page of %d rows, want at most %d", len(rows), f.Limit)
		}
		all = append(all, rows...)
		if len(rows) < f.Limit {
			return all
		}
		f.After = rows[len(rows)-1]
	}
}

// byNext orders rows as List does.
func byNext(a, b timeout.Row) int {
	return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID))
}

// listEachOnce of many timers of several kinds, moments and states.
func listEachOnce(ctx context.Context, t *testing.T, c StoreClient) {
	start := c.now(ctx, t).Add(-time.Hour)
	kinds := []string{"B", "a", "b.c", kind}
	ids := numbered(c.many / 4 * 4)
	timers := make([]timeout.Timer, len(ids))
	for i, id := range ids {
		timers[i] = timeout.Timer{Kind: kinds[i%len(kinds)], ID: id, Due: start.Add(time.Duration(i*7919%600) * time.Second / 10)}
	}
	c.insertIn(ctx, t, timeout.Base, timers...)
	c.markDead(ctx, t, ids...)
	for _, state := range []timeout.State{"", timeout.Open, timeout.Dead} {
		all := c.pages(ctx, t, timeout.Filter{State: state, Limit: 777})
		if !slices.IsSortedFunc(all, byNext) {
			t.Errorf("state %q: not in the order of next, kind and id", state)
		}
		dead := len(ids) / 4
		want := map[timeout.State]int{"": 4 * dead, timeout.Open: 3 * dead, timeout.Dead: dead}[state]
		distinct := make(map[[2]string]bool)
		for _, r := range all {
			distinct[[2]string{r.Kind, r.ID}] = true
			if (r.Kind == kind) != (r.State == timeout.Dead) {
				t.Fatalf("%s timer %s is %s", r.Kind, r.ID, r.State)
			}
		}
		for i, r := range c.pages(ctx, t, timeout.Filter{State: state, Limit: 777, Brief: true}) {
			full := all[i]
			if r.Kind != full.Kind || r.ID != full.ID || r.Partition != full.Partition || r.State != full.State || !r.Next.Equal(full.Next) {
				t.Fatalf("state %q: brief %+v, want %+v", state, r, full)
			}
		}
		if len(all) != want || len(distinct) != want {
			t.Errorf("state %q: %d rows, %d distinct; want %d", state, len(all), len(distinct), want)
		}
	}
}

// listOneMoment pages through timers that differ only in their keys.
func listOneMoment(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(time.Hour)
	ids := numbered(1000)
	c.insert(ctx, t, due, ids...)
	c.insertIn(ctx, t, timeout.Base, timeout.Timer{Kind: "a", ID: "z", Due: due}, timeout.Timer{Kind: "z", ID: "a", Due: due})
	got := idsOf(c.pages(ctx, t, timeout.Filter{State: timeout.Open, Limit: 99}))
	same(t, "listed", got, slices.Concat([]string{"z"}, ids, []string{"a"}))
}

func listFilters(ctx context.Context, t *testing.T, c StoreClient) {
	due := c.now(ctx, t).Add(-time.Minute)
	c.insert(ctx, t, due, "early", "dead")
	c.insert(ctx, t, due.Add(time.Second), "middle")
	c.insert(ctx, t, due.Add(2*time.Second), "late")
	c.insertIn(ctx, t, "canary", timeout.Timer{Kind: "other", ID: "other", Due: due.Add(time.Second)})
	c.markDead(ctx, t, "dead")
	for _, test := range []struct {
		name   string
		filter timeout.Filter
		want   []string
	}{
		{"nothing is chosen", timeout.Filter{}, []string{"dead", "early", "middle", "other", "late"}},
		{"kind", timeout.Filter{Kind: "other"}, []string{"other"}},
		{"open", timeout.Filter{State: timeout.Open}, []string{"early", "middle", "other", "late"}},
		{"dead", timeout.Filter{State: timeout.Dead}, []string{"dead"}},
		{"until", timeout.Filter{Until: due.Add(1500 * time.Millisecond)}, []string{"dead", "early", "middle", "other"}},
		{"limit", timeout.Filter{Limit: 2}, []string{"dead", "early"}},
		{"all of them", timeout.Filter{
			Kind: kind, State: timeout.Open, Until: due.Add(1500 * time.Millisecond), Limit: 2,
			After: timeout.Row{Timer: timeout.Timer{Kind: kind, ID: "early"}, Next: due},
		}, []string{"middle"}},
	} {
		same(t, test.name, idsOf(c.list(ctx, t, test.filter)), test.want)
	}
}

func listIsBounded(ctx context.Context, t *testing.T, c StoreClient) {
	many := min(c.many, 5001)
	c.insert(ctx, t, c.now(ctx, t).Add(-time.Minute), numbered(many)...)
	for limit, want := range map[int]int{0: 100, 5000: min(many, 5000), 1_000_000: min(many, 5000)} {
		if rows := c.list(ctx, t, timeout.Filter{Limit: limit}); len(rows) != want {
			t.Errorf("limit %d: %d rows, want %d", limit, len(rows), want)
		}
	}
}

func countAll(ctx context.Context, t *testing.T, c StoreClient) {
	c.counts(ctx, t, nil)
	c.insert(ctx, t, c.now(ctx, t).Add(-time.Minute), "a", "b", "c")
	c.markDead(ctx, t, "c")
	c.insertIn(ctx, t, "canary", timeout.Timer{Kind: kind, ID: "d"}, timeout.Timer{Kind: "other", ID: "d"})
	c.counts(ctx, t, map[timeout.Shard]map[timeout.State]int{
		{Kind: kind, Partition: timeout.Base}: {timeout.Open: 2, timeout.Dead: 1},
		{Kind: kind, Partition: "canary"}:     {timeout.Open: 1},
		{Kind: "other", Partition: "canary"}:  {timeout.Open: 1},
	})
}
