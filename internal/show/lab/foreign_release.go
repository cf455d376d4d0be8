package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/stock"
)

// The locks of an order worker, by their names in its task. Empty is redislock.
const (
	lockDelete  = "textbook"       // SET NX with a TTL; the release is DEL
	lockCompare = "textbook owner" // the release compares the owner, and deletes
)

// textbook is the lock of many tutorials. A lease does not watch its TTL.
type textbookLock struct {
	rdb     redis.UniversalClient
	ttl     time.Duration
	compare bool
}

// textbookKey is the key of a textbook lock in Redis.
func textbookKey(key string) string { return "lab:lock:" + key }

// acquire polls until the key is free.
func (l textbookLock) acquire(ctx context.Context, key string) *dlock.Lease {
	name, owner := textbookKey(key), rand.Text()
	await(ctx, "the lock", func() bool { return must(l.rdb.SetNX(ctx, name, owner, l.ttl).Result()) })
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: dlock.Fence{Owner: owner}, Release: func(ctx context.Context) error { return l.release(ctx, name, owner) },
	})
}

func (l textbookLock) release(ctx context.Context, name, owner string) error {
	if !l.compare {
		return l.rdb.Del(ctx, name).Err()
	}
	const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	n, err := l.rdb.Eval(ctx, compareAndDelete, []string{name}, owner).Int()
	if err == nil && n == 0 {
		err = &dlock.LostError{Reason: dlock.Taken}
	}
	return err
}

func runForeignRelease(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("two units: A sells one, and releases its lock after the lock has expired", Legend{Holds: "has the lock, the right outcome", Stale: "works without its lock, a step too many", Waits: "waits for the lock", Paused: "paused"})
	del := t.foreignRelease(ctx, "DEL", lockDelete)
	r.Effect(del.deleted && del.together, "DEL: the late release of A deleted the lock of B, and %s held the lock at once", fmt.Sprintf("%d processes", del.holders()))
	r.Effect(del.audit.Oversold() == 1, "DEL: B and C both sold the last unit; oversold by %d", del.audit.Oversold())
	for _, cure := range []struct{ name, lock, text string }{
		{"owner", lockCompare, "compare the owner, then delete"}, {"redislock", "", "redislock"},
	} {
		ended := t.foreignRelease(ctx, cure.name, cure.lock)
		r.Cure(!ended.deleted && !ended.together && ended.audit.OK(), "%s: the release of A changed nothing, and C waited for B", cure.text)
	}
}

// foreign is what a late release did.
type foreign struct {
	deleted  bool // the lock of B
	together bool // B and C had the lock at the same time
	audit    stock.Audit
}

func (f foreign) holders() int {
	if f.together {
		return 2
	}
	return 1
}

func (t *theater) foreignRelease(ctx context.Context, name, lock string) (f foreign) {
	c := t.scene(ctx, name, stock.WriteBack, 2)
	h := c.holders(ctx, lock)
	a, b, third := h[0], h[1], h[2]
	paused := c.expires(ctx, a, b)
	c.pace(ctx)
	resumed := time.Now()
	a.Continue()
	a.Resume()
	a.releases(ctx)
	c.step("SIGCONT resumes A, which releases what it takes for its lock: %s", a.released.Value)
	if f.deleted = c.free(ctx, lock); f.deleted {
		c.step("the lock of B is gone from Redis, and B is not notified")
	} else {
		c.step("B still has the lock")
	}
	c.last(ctx, f.deleted, b, third)
	f.together = third.locked.At.Before(b.done.At)
	c.r.Measure("holders at once: "+name, float64(f.holders()), "processes")
	c.span("A", a.locked.At, paused, Holds, "locked")
	c.span("A", paused, resumed, Paused, "paused by SIGSTOP")
	c.mark("A", a.done.At, true, "A writes: %s", a.done.Value)
	c.mark("A", a.released.At, !f.deleted, "A releases: %s", a.released.Value)
	gone := map[bool]time.Time{true: a.released.At}[f.deleted]
	b.drawn("deleted", gone, true)
	f.audit = c.judge(ctx)
	third.drawn("", time.Time{}, f.audit.OK())
	return f
}

// holders starts A, B and C.
func (c *scene) holders(ctx context.Context, lock string) (all [3]*holder) {
	for i, like := range []struct{ name, ttl, stop string }{{"A", shortTTL, pointRead + "," + pointDone}, {"B", longTTL, pointRead}, {"C", longTTL, pointRead}} {
		all[i] = c.holder(ctx, like.name, like.ttl, like.stop, "lock", lock)
	}
	return all
}

// expires lets A order, pauses it before its release, and lets B take the lock when that of A has expired.
func (c *scene) expires(ctx context.Context, a, b *holder) (paused time.Time) {
	a.acquires(ctx)
	c.pace(ctx)
	a.orders(ctx)
	c.pace(ctx)
	a.Pause()
	paused = time.Now()
	c.step("A has the lock and sells 1 of 2 units: %s. SIGSTOP pauses it before its release", a.done.Value)
	b.acquires(ctx)
	c.step("the lock of A has expired: B takes it, reads that 1 unit is left, and stops before its transaction")
	return paused
}

// free reports whether nobody has the lock.
func (c *scene) free(ctx context.Context, lock string) bool {
	if lock == "" {
		return !must(c.locker().Inspect(ctx, stock.LockKey(c.sku))).Held
	}
	return must(c.r.client(c.Redis).Exists(ctx, textbookKey(stock.LockKey(c.sku))).Result()) == 0
}

// last lets C ask for the lock and order; it gets the lock before B has ordered if the lock is free.
func (c *scene) last(ctx context.Context, free bool, b, third *holder) {
	third.asks()
	if free {
		third.gets(ctx)
		c.step("C takes the lock while B works under it, and reads that 1 unit is left")
	}
	c.pace(ctx)
	b.finishes(ctx)
	c.step("B writes and releases the lock: %s; %s", b.done.Value, b.released.Value)
	if !free {
		third.gets(ctx)
	}
	c.pace(ctx)
	third.finishes(ctx)
	c.step("C writes: %s", third.done.Value)
}

// acquireTextbook returns a lease of the textbook lock of a task.
func acquireTextbook(ctx context.Context, w *Worker, sku string) *dlock.Lease {
	rdb := must(redisclient.New(w.Task["redis"]))
	l := textbookLock{rdb: rdb, ttl: w.duration("ttl"), compare: w.Task["lock"] == lockCompare}
	return l.acquire(ctx, stock.LockKey(sku))
}
