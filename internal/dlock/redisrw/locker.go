package redisrw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// RW is [dlock.RWLocker] in Redis, phase-fair; writers go first come, first served. Close it to end what it does in
// the background.
//
// # Data
//
//	shop:rw:{KEY}                   hash        fence and owner: of the last writer, or of the first reader after
//	                                            one that expired; writer and until: who writes, for how long;
//	                                            since: from when; wrote: 1 after a writer; ticket; forced: last
//	                                            token that was force-released                               24 h
//	shop:rw:{KEY}:readers           sorted set  id of each reader, by the end of its grant
//	shop:rw:{KEY}:writers-waiting   sorted set  ids by ticket
//	shop:rw:{KEY}:readers-waiting   sorted set  ids by ticket: those of the next phase
//	shop:rw:{KEY}:readers-next      sorted set  those of a phase that has begun and are not in yet
//	shop:rw:{KEY}:waits             hash        when each waiter last sent a request, the validity of a notified grant, and the stamp it gave
//
// A phase begins by renaming readers-waiting to readers-next, so later readers wait for the next phase. All times are
// those of the server.
//
// # Operations
//
// Each is one script and one round trip, which concurrent callers share.
//
//	acquire.lua   take, or queue, or ask again: by id, any number of times       O(log n)
//	release.lua   end this grant (id and fence), begin the next phase            O(log n) per reader let in
//	admit.lua     let more readers of a large phase in, or pass dead writers     likewise
//	renew.lua     new TTLs for the grants of one key (id and fence)              O(log n) per grant
//	abandon.lua   release whatever an id has                                     as release
//	inspect.lua   who holds it, and how many wait                                O(log n)
//	force.lua     end every grant, move the fence on, begin the next phase       O(readers), then as release
//
// To let a phase in takes as long as it has readers. A script lets 64 in, and the client that releases calls again
// until all are in. If that client dies, the polls of the waiters let the rest in. A waiter gets its grant by a
// notification, and polls within a second. After 3 seconds of silence it counts as dead when its turn comes.
//
// # What a crash leaves behind
//
// A reader keeps writers out, and a writer everybody, until the TTL ends. A waiter keeps its place for 3 seconds. If
// it was granted the key by a notification, it keeps the key for 5 seconds or the TTL. A server that loses its data
// forgets readers that still hold their leases until their next renewal. A writer can hold the key alongside them for
// that time. A resource that checks fencing tokens refuses them once the writer has written.
type RW struct {
	cfg      Config
	first    time.Duration // how long Redis keeps a notified grant
	poll     time.Duration // how often a waiter asks again
	notifier *redisx.Notifier
	calls    *redisx.Caller
	renewals *redisx.Caller // apart, so that a renewal waits for no other call
	renewer  *driver.Renewer
	rollback *driver.Rollback
	sides    driver.RWSides
}

var (
	_ dlock.RWLocker      = (*RW)(nil)
	_ dlock.Inspector     = (*RW)(nil)
	_ dlock.ForceReleaser = (*RW)(nil)
)

// waiterTTL is how long the scripts keep a waiter that does not ask again.
// All clients share it, whatever their TTL is.
const waiterTTL = 3 * time.Second

// pushTTL is how long a grant lasts that was sent by a notification to a waiter, which may have
// died since it asked last.
const pushTTL = 5 * time.Second

// New returns an RW on rdb, which it does not close. It refuses clients
// that repeat commands by themselves or ignore deadlines.
func New(rdb redis.UniversalClient, cfg Config) (*RW, error) {
	if err := errors.Join(cfg.validate(), redisx.Check(rdb)); err != nil {
		return nil, fmt.Errorf("redisrw: %w", err)
	}
	l := &RW{
		cfg:      cfg,
		first:    min(cfg.TTL, pushTTL),
		poll:     min(time.Second, cfg.TTL/4),
		notifier: redisx.NewNotifier(rdb, cfg.Prefix, nil),
		calls:    redisx.NewCaller(rdb, cfg.Timeout),
		renewals: redisx.NewCaller(rdb, cfg.Timeout),
	}
	l.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: max(cfg.TTL, 2*waiterTTL), Pause: cfg.Timeout / 4, Timeout: 2 * cfg.Timeout, Revert: l.revert,
	})
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	return l, nil
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases them. Then it ends the subscription, and
// waits until every uncertain acquisition has been released, or its TTL has passed. If ctx ends first, Close returns
// the error of ctx, and the rest expires by its TTL.
func (l *RW) Close(ctx context.Context) error {
	return errors.Join(l.renewer.Close(ctx), l.notifier.Close(ctx), l.rollback.Wait(ctx))
}

// start sends one script about key with the arguments that all of them begin with.
func (l *RW) start(ctx context.Context, b *redisx.Caller, script redisx.Script, key string, args ...any) *redisx.Call {
	return b.Start(ctx, script, l.keys(key), append([]any{
		l.cfg.TTL.Milliseconds(), l.first.Milliseconds(), waiterTTL.Milliseconds(),
		l.notifier.Command(), l.notifier.Channels(l.base(key)),
	}, args...)...)
}

// Acquire implements [dlock.Locker] for a writer.
func (l *RW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.acquire(ctx, key, true)
}

// AcquireRead implements [dlock.RWLocker].
func (l *RW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.acquire(ctx, key, false)
}

// TryAcquire implements [dlock.Locker] for a writer.
func (l *RW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.tryAcquire(ctx, key, true)
}

// TryAcquireRead implements [dlock.RWLocker].
func (l *RW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.tryAcquire(ctx, key, false)
}
