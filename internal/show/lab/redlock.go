package lab

import (
	"context"
	"strings"
	"time"

	"example.com/shop/internal/platform/testbed"
)

// redlockWorker sells if its task has a SKU, and otherwise holds a lease.
func redlockWorker(ctx context.Context, w *Worker) {
	if w.Task["sku"] != "" {
		orderWorker(ctx, w)
		return
	}
	leaseWorker(ctx, w)
}

// redlockTTL leaves time to restart a server while a lease is valid.
const redlockTTL = 2500 * time.Millisecond

// quorum is five servers, and the pictures and processes of a run on them.
type quorum struct {
	r       *Run
	servers [5]*testbed.Redis
	picture *Picture
}

func runRedlock(ctx context.Context, r *Run) {
	q := &quorum{r: r, picture: &Picture{Title: "five servers: first one is wiped, then holders are paused", Legend: Legend{
		Holds: "has the lock, the right outcome", Stale: "a second holder, a write too many", Waits: "waits for the lock", Paused: "paused",
	}}}
	for i := range q.servers {
		server := must(testbed.StartRedis(ctx, testbed.RedisConfig{}))
		r.Defer(server.Close)
		q.servers[i] = server
	}
	r.Step("five independent Redis servers run; each lock has a TTL of %v", redlockTTL)
	r.Draw(q.picture)
	q.freezeOne(ctx)
	q.wipeOne(ctx)
	q.pauseHolders(ctx)
}

// urls returns the addresses of the servers, of which those after the first n go through a proxy.
func (q *quorum) urls(ctx context.Context, n int) string {
	var urls []string
	for i, server := range q.servers {
		address := server.Addr()
		if i >= n {
			proxy := must(testbed.NewProxy(ctx, address))
			q.r.Defer(proxy.Close)
			proxy.Refuse()
			address = proxy.Addr()
		}
		urls = append(urls, "redis://"+address+"/0")
	}
	return strings.Join(urls, " ")
}

// holder starts a worker that is about to acquire a lease from the first n servers.
func (q *quorum) holder(ctx context.Context, name, prefix, settle string, n int) *Process {
	return q.r.ready(ctx, name, map[string]string{
		"servers": q.urls(ctx, n), "ttl": redlockTTL.String(), "key": "sku", "prefix": prefix, "settle": settle,
	})
}

// freezeOne takes and releases a lock while one server is frozen.
func (q *quorum) freezeOne(ctx context.Context) {
	p := q.holder(ctx, "holder", "", "-1ns", len(q.servers))
	frozen := q.servers[4]
	check(frozen.Pause())
	began := time.Now()
	locked := p.To(ctx, pointLocked)
	released := p.To(ctx, pointReleased)
	took := locked.At.Sub(began)
	q.r.Step("server 5 is frozen; a process acquires a lock from the other four in %.0f ms, and releases it", milliseconds(took))
	q.r.Measure("acquire with one server frozen, first connections included", milliseconds(took), "ms")
	q.r.Cure(took < redlockTTL && released.Value == noError, "with one server frozen, a lock was acquired and released")
	check(frozen.Resume())
}

// noError is how a worker reports that there was no error.
const noError = "<nil>"

// tenure is a holder of a lease and the next one, as they have reported.
type tenure struct {
	name          string
	first, second *Process
	locked, lost  Report // of the first
	next          Report // the second has the lock
}

// overlap returns how long both considered their leases valid.
func (t *tenure) overlap() time.Duration { return max(0, t.lost.At.Sub(t.next.At)) }

// wipeOne has a lock on three servers of five, and wipes one of the three. A second process asks all five for the lock.
func (q *quorum) wipeOne(ctx context.Context) {
	eager, settled := &tenure{name: "votes at once"}, &tenure{name: "waits a TTL"}
	both := []*tenure{eager, settled}
	for _, server := range q.servers { // they have served before: they have nothing to forget
		rdb := q.r.client(server.URL())
		check(rdb.MSet(ctx, "eager:known", 1, "settled:known", 1).Err())
	}
	for _, t := range both {
		prefix, settle := "eager:", "-1ns"
		if t == settled {
			prefix, settle = "settled:", ""
		}
		t.first = q.holder(ctx, t.name+": A", prefix, settle, 3)
		t.second = q.holder(ctx, t.name+": B", prefix, settle, len(q.servers))
	}
	for _, t := range both {
		t.locked = t.first.To(ctx, pointLocked)
	}
	q.r.Step("two locks, each with a process A and a process B. In both, A reaches servers 1, 2 and 3 only. That is a majority: A has the lock")
	wiped := time.Now()
	check(q.servers[2].Kill())
	check(q.servers[2].Restart(ctx))
	q.r.Step("server 3 crashes and returns without data: it has forgotten both grants. For one lock it votes at once, for the other it waits for a TTL. Both B ask all servers")
	for _, t := range both {
		t.second.Continue()
	}
	for _, t := range both {
		t.next = t.second.Until(ctx, pointLocked)
		t.lost = t.first.Until(ctx, pointLost)
	}
	q.judgeWipe(wiped, eager, settled)
	for _, t := range both {
		t.second.To(ctx, pointReleased)
	}
}

// judgeWipe reports both overlaps after the end of the second, so its steps are in the past tense.
func (q *quorum) judgeWipe(wiped time.Time, eager, settled *tenure) {
	q.r.Step("result for the lock on which server 3 voted at once: B got servers 3, 4 and 5, a majority. For %.0f ms, A considered its lease valid, too", milliseconds(eager.overlap()))
	q.r.Step("result for the lock on which server 3 waited for a TTL: B got the lock %.0f ms after the lease of A had ended", milliseconds(settled.next.At.Sub(settled.lost.At)))
	q.picture.Mark("server 3", wiped, Stale, "it crashes, and returns without data")
	for _, t := range []*tenure{eager, settled} {
		q.picture.Span(t.name+": A", t.locked.At, t.lost.At, Holds, "A holds")
		end := t.next.At.Add(redlockTTL / 10)
		if t.overlap() > 0 {
			q.picture.Span(t.name+": B", t.next.At, t.lost.At, Stale, "B holds, too")
			end = t.lost.At.Add(redlockTTL / 10)
		}
		q.picture.Span(t.name+": B", t.next.At.Add(t.overlap()), end, Holds, "B")
		q.r.Measure("two holders: server 3 "+t.name, milliseconds(t.overlap()), "ms")
	}
	q.r.Effect(eager.overlap() > 0, "a wiped server that votes at once made two holders for %.0f ms", milliseconds(eager.overlap()))
	q.r.Cure(settled.overlap() == 0, "a wiped server that waits for a TTL made none")
}
