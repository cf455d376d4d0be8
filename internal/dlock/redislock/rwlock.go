package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisclient"
)

// RWConfig is the configuration of an [RW].
type RWConfig struct {
	// TTL is how long Redis keeps a grant that is not renewed: the time that a dead
	// reader keeps writers out, and a dead writer everybody. 0 means 30 s.
	TTL time.Duration

	// Timeout bounds one round trip, and with it how long an attempt goes on after
	// its context was cancelled. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// MaxHold ends a lease that long after it was granted. 0 means no limit.
	MaxHold time.Duration

	// NoReentry refuses to acquire a key again with the context of a lease that
	// holds it.
	NoReentry bool

	// Prefix begins every key and channel in Redis. Empty means "shop:rw:".
	Prefix string
}

// RW is [dlock.RWLocker] in Redis, phase-fair; writers go first come, first
// served. Close it to end what it does in the background.
//
// # Data
//
//	shop:rw:{KEY}                   hash        fence and owner: of the last writer; writer and until: who
//	                                            writes, for how long; since: from when; wrote: 1 after a
//	                                            writer; ticket; forced: last token that was forced out  24 h
//	shop:rw:{KEY}:readers           sorted set  id of each reader, by the end of its grant
//	shop:rw:{KEY}:writers-waiting   sorted set  ids by ticket
//	shop:rw:{KEY}:readers-waiting   sorted set  ids by ticket: those of the next phase
//	shop:rw:{KEY}:readers-next      sorted set  those of a phase that has begun and are not in yet
//	shop:rw:{KEY}:waits             hash        when each waiter last sent a request, the validity of a pushed grant, and the stamp it gave
//
// A phase begins by renaming readers-waiting to readers-next: so who comes later
// waits for the next one. All times are those of the server.
//
// # Operations
//
// Each is one script and one round trip, which concurrent callers share.
//
//	rwlock_acquire.lua   take, or queue, or ask again: by id, any number of times       O(log n)
//	rwlock_release.lua   end this grant (id and fence), begin the next phase            O(log n) per reader let in
//	rwlock_admit.lua     let more readers of a large phase in                           likewise
//	rwlock_renew.lua     new TTLs for the grants of one key (id and fence)              O(log n) per grant
//	rwlock_abandon.lua   take back whatever an id has                                   as release
//	rwlock_inspect.lua   who holds it, and how many wait                                O(log n)
//	rwlock_force.lua     end every grant, move the fence on, begin the next phase       O(readers), then as release
//
// To let a phase in takes as long as it has readers. A script lets 64 in, and the
// client that releases calls again until all are; if it dies, those who wait go on
// by asking again. A waiter gets its grant by a push, asks again within a second,
// and after 3 seconds of silence is taken for dead, when its turn comes.
//
// # What a crash leaves behind
//
// A reader keeps writers out, and a writer everybody, until the TTL ends. A
// waiter keeps its place for 3 seconds; if a grant was pushed to it, for 5 seconds
// or the TTL. A server that loses its data forgets readers that still believe in
// their leases until their next renewal: a writer can be beside them for that time,
// and a resource that checks fences refuses them once it has written.
type RW struct {
	cfg      RWConfig
	first    time.Duration // how long Redis keeps a pushed grant
	recheck  time.Duration // how often a waiter asks again
	hub      *hub
	calls    *batcher
	renewals *batcher // apart, so that a renewal waits for no other call
	renewer  *driver.Renewer
	undo     *driver.Undo
	sides    driver.RWSides
}

var (
	_ dlock.RWLocker      = (*RW)(nil)
	_ dlock.Inspector     = (*RW)(nil)
	_ dlock.ForceReleaser = (*RW)(nil)
)

// rwPatience is how long the scripts believe in a waiter that does not ask again.
// All clients share it, whatever their TTL is.
const rwPatience = 3 * time.Second

// rwPushTTL is how long a grant lasts that was pushed to a waiter, which may have
// died since it asked last.
const rwPushTTL = 5 * time.Second

// NewRW returns an RW on rdb, which it does not close. It refuses the clients
// that [New] refuses.
func NewRW(rdb redis.UniversalClient, cfg RWConfig) (*RW, error) {
	// It has the options of a Locker, and the same limits.
	same := Config{TTL: cfg.TTL, Timeout: cfg.Timeout, Prefix: cmp.Or(cfg.Prefix, rwPrefix)}
	if err := errors.Join(same.validate(), redisclient.Check(rdb)); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	cfg.TTL, cfg.Timeout, cfg.Prefix = same.TTL, same.Timeout, same.Prefix
	l := &RW{
		cfg:      cfg,
		first:    min(cfg.TTL, rwPushTTL),
		recheck:  min(time.Second, cfg.TTL/4),
		hub:      newHub(rdb, cfg.Prefix, nil),
		calls:    newBatcher(rdb, cfg.Timeout),
		renewals: newBatcher(rdb, cfg.Timeout),
	}
	l.undo = undoOf(max(cfg.TTL, 2*rwPatience), cfg.Timeout, l.giveBack)
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	return l, nil
}

// Close stops to listen for pushes, and waits until every uncertain acquisition
// has been given back, or its TTL has passed, or ctx has ended: then it returns
// the error of ctx, and the rest is left to the TTL. Before that it
// ends all leases as lost, with the reason [dlock.Closed], and gives them back.
func (l *RW) Close(ctx context.Context) error {
	return errors.Join(l.renewer.Close(ctx), l.hub.close(ctx), l.undo.Wait(ctx))
}

// start sends one script about key with the arguments that all of them begin with.
func (l *RW) start(ctx context.Context, b *batcher, script script, key string, args ...any) *call {
	return b.start(ctx, script, l.keys(key), append([]any{
		l.cfg.TTL.Milliseconds(), l.first.Milliseconds(), rwPatience.Milliseconds(),
		l.hub.command(), l.hub.channels(l.base(key)),
	}, args...)...)
}

// numbers waits for a reply of n integers.
func numbers(c *call, n int) ([]int64, error) {
	reply, _, err := c.wait()
	if err != nil {
		return nil, err
	}
	all, _ := reply.([]any)
	list := make([]int64, 0, n)
	for _, one := range all {
		number, _ := one.(int64)
		list = append(list, number)
	}
	if len(list) != n {
		return nil, fmt.Errorf("redislock: reply %v", reply)
	}
	return list, nil
}

// lease turns a grant into what the caller gets.
func (l *RW) lease(ctx context.Context, a *rwAttempt, fence dlock.Fence, sent time.Time, first time.Duration) *dlock.Lease {
	g := dlock.Grant{
		Key: a.key, Fence: fence, Sent: sent, TTL: l.cfg.TTL, First: first,
		MaxHold: l.cfg.MaxHold, NoReentry: l.cfg.NoReentry,
		Kind: a.kind(), Backend: l.sides.Side(a.write), Renewer: l.renewer,
	}
	g.Release = func(ctx context.Context) error { return l.release(ctx, a, fence) }
	if a.doubt { // that request may arrive when the grant is over, and take the key for nobody
		g.Ended = func(error) { l.abandon(ctx, a) }
	}
	return dlock.NewLease(ctx, g)
}

// release gives one grant back. Of a large phase that begins with that, it lets
// in all: the scripts do so in parts, to stay short.
func (l *RW) release(ctx context.Context, a *rwAttempt, fence dlock.Fence) error {
	reply, err := numbers(l.start(ctx, l.calls, rwReleaseScript, a.key, a.id, a.mode(), fence.Token), 2)
	if err != nil { // lost, or refused for now: nobody else gives the grant back before its TTL
		l.abandon(ctx, a)
		return err
	}
	l.admit(ctx, a.key, reply[1])
	return rwVerdict(a.key, fence, reply[0])
}

// admit goes on for as long as there is more. If it cannot, those who wait do so
// by asking again.
func (l *RW) admit(ctx context.Context, key string, more int64) {
	for more == 1 {
		next, err := numbers(l.start(ctx, l.calls, rwAdmitScript, key), 1)
		if err != nil {
			return
		}
		more = next[0]
	}
}

// renew is for the Renewer. It makes one call per key, all in one round trip.
func (l *RW) renew(ctx context.Context, held []dlock.Held) []error {
	places := map[string][]int{} // of each key in held
	for i, h := range held {
		places[h.Key] = append(places[h.Key], i)
	}
	calls := make(map[string]*call, len(places))
	for key, all := range places {
		var args []any
		for _, i := range all {
			id, mode := rwOwner(held[i])
			args = append(args, id, mode, held[i].Fence.Token)
		}
		calls[key] = l.start(ctx, l.renewals, rwRenewScript, key, args...)
	}
	errs := make([]error, len(held))
	for key, all := range places {
		verdicts, err := numbers(calls[key], len(all))
		for n, i := range all {
			if errs[i] = err; err == nil {
				errs[i] = rwVerdict(key, held[i].Fence, verdicts[n])
			}
		}
	}
	return errs
}

// rwVerdict reads what rwlock_renew.lua and rwlock_release.lua say of one grant.
func rwVerdict(key string, fence dlock.Fence, n int64) error {
	return verdict(dlock.Held{Key: key, Fence: fence}, n)
}
