package redissem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// maxWeight bounds what one lease can hold: scripts touch every permit of it.
const maxWeight = 1024

// Semaphore is [dlock.Semaphore] in Redis, standalone, behind Sentinel or in a Cluster: permits with leases, first
// come, first served.
//
// # Data
//
//	shop:sem:{KEY}         zset    OWNER:1 ... OWNER:N -> when the permit expires, by the clock of the server
//	shop:sem:{KEY}:queue   zset    OWNER -> ticket
//	shop:sem:{KEY}:owners  hash    OWNER -> FENCE:N of a holder, FENCE:N:DEAD:SPAN:STAMP of a waiter
//	shop:sem:{KEY}:state   hash    last fence; epoch, when this state began; hold, until when nothing is granted, and wait, its length
//	shop:sem:{KEY}:limit   string  number of permits, if it was resized
//
// A lease of N permits is N members of the first set, at most 1024. So the number of free permits is the limit minus
// ZCARD. No second counter can drift from the holders by a crash, an eviction or a mistake. (A sum of weights
// alongside the set would be such a counter. To add up the weights of all holders would make every script O(holders).
// N members cost only the caller that asks for N.)
//
// OWNER is new for every call of Acquire and TryAcquire, so that an attempt can be repeated: it finds its grant, or
// its place. It ends with the TTL in ms. The ticket is the fencing token of the grant to come, max(last+1, TIME in microseconds). Because grants
// are made in the order of tickets, fencing tokens increase from grant to grant.
//
// # Operations
//
//	acquire  takes the permits, or the last place in the queue; again: renews either   1 round trip
//	release  removes the permits, and grants to the head of the queue                  1 round trip
//	renew    extends the permits of up to 100 leases, never adds one                   1 round trip every TTL/3, for all leases of a client
//	abandon  removes what an owner has, permits or place                               when a wait ends, or an outcome is unknown
//	resize   sets the limit, and grants                                                1 round trip
//
// Each operation is one script, O(N log holders), and concurrent callers share round trips. Each script also drops up
// to 64 expired grants, and grants the free permits. A script that frees permits makes up to 64 grants, and notifies
// the process of each waiter, which need not send a request. A hand-off costs half a round trip up, half a round trip
// down, and wakes only that waiter. Waiters poll within a second (or TTL/8), because a notification can be lost and a
// holder can die. A waiter that has sent nothing for three such pauses and a timeout is dead, and is dropped when it
// comes to the head. That is less than two thirds of the TTL, the least that a dead holder still had. A notified grant
// that is not renewed expires after half as long again, and is first renewed after a third of that. So the permits of a
// process never go to a waiter that died with it.
//
// Only the head of the queue is granted permits, and no waiter passes it. So a waiter for many permits blocks later
// waiters, who would have enough, until it has its own. TryAcquire takes nothing while anybody waits.
//
// Resize to less grants nothing until enough permits are released; holders keep their permits. A waiter for more
// permits than the new limit fails with ErrInvalidPermits when it comes to the head, or polls.
//
// # What a crash leaves behind
//
// A holder: its permits, for a TTL at most. A waiter: its place, until it is dead and at the head. The rest expires:
// the first three keys together, two TTLs after their last use, and the state after a day. The limit stays.
//
// If the clock of Redis is set back, permits and waiters that would outlast it have a time from before. When a caller
// lacks permits, such permits begin their TTL again. Such a waiter is dropped at the head, and queues again at its next poll.
//
// # What a loss of data does to the limit
//
// The limit holds among the permits granted before a loss, and among those granted after it, and not over both. So up
// to twice the permits can be out, and once more for every further loss within a TTL. This ends when the former
// holders are notified: at their next renewal, a third of a TTL at most. Without a network it ends nine tenths of a
// TTL after the last renewal that was acknowledged. A limit that was set by Resize is lost too.
//
// A server without its data (killed and started empty, FLUSHALL, a removed key) does less harm. A client that
// remembers another epoch proves the loss. Then nothing is granted until one TTL after the new epoch began, when no
// former holder can consider its lease valid any more. So the limit holds over the loss as well if all clients that
// ask meanwhile have used the key before, with a TTL that is not shorter than that of the former holders. Each client
// remembers the last 4096 keys that it used within six hours. A
// client that is new to the key cannot detect the loss, and is granted permits until another client has proved it.
// (If each client that finds no epoch waited, the first use of every key would take a TTL. A mark that distinguishes
// a new key from a lost one would be one key for all semaphores. A script in a Cluster cannot name it alongside
// theirs.)
//
// A server that restarts with older data, from a snapshot or as a replica that lagged, has its epoch. No client can
// detect that loss.
//
// No fencing token helps, because that of a semaphore excludes no client, unless one takes all permits (package redisrw). A semaphore limits load. If one user too
// many does damage, give each place a name and the key of its own lock. Then let the resource check the fencing token
// of the place.
type Semaphore struct {
	permits  int
	ttl      time.Duration
	maxHold  time.Duration
	timeout  time.Duration
	poll     time.Duration // how often a waiter asks again
	prefix   string
	epochs   epochs
	notifier *redisx.Notifier
	calls    *redisx.Caller
	renewer  *driver.Renewer

	renewals *redisx.Caller // apart: a renewal waits for no other call
	rollback *driver.Rollback
}

var (
	_ dlock.Semaphore = (*Semaphore)(nil)
	_ dlock.Resizer   = (*Semaphore)(nil)
)

// New returns a Semaphore on rdb, which it does not close. It refuses
// clients that repeat commands by themselves or ignore deadlines.
func New(rdb redis.UniversalClient, cfg Config) (*Semaphore, error) {
	ttl := cmp.Or(cfg.TTL, 30*time.Second)
	timeout := min(cmp.Or(cfg.Timeout, 2*time.Second), ttl/4)
	s := &Semaphore{
		permits: cmp.Or(cfg.Permits, 1),
		ttl:     ttl,
		maxHold: cfg.MaxHold,
		timeout: timeout,
		poll:    min(time.Second, ttl/8),
		prefix:  cmp.Or(cfg.Prefix, defaultPrefix),
		calls:   redisx.NewCaller(rdb, timeout),

		renewals: redisx.NewCaller(rdb, timeout),
	}
	if ttl < time.Millisecond {
		return nil, fmt.Errorf("redissem: TTL %v is less than a millisecond", ttl)
	}
	if s.permits < 1 {
		return nil, fmt.Errorf("redissem: %d permits: %w", cfg.Permits, dlock.ErrInvalidPermits)
	}
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("redissem: %w", err)
	}
	s.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: max(ttl, 2*s.waiterTTL()), Pause: timeout / 4, Timeout: 2 * timeout, Revert: s.revert,
	})
	s.notifier = redisx.NewNotifier(rdb, s.prefix, ttl, nil)
	s.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: s.renew})
	return s, nil
}

// Resize implements [dlock.Resizer]. Redis keeps the number until it is resized
// again, or loses its data.
func (s *Semaphore) Resize(ctx context.Context, key string, permits int) error {
	if err := redisx.CheckKey(key); err != nil {
		return err
	}
	if permits < 1 {
		return fmt.Errorf("redissem: resize %q to %d: %w", key, permits, dlock.ErrInvalidPermits)
	}
	if _, _, err := s.run(ctx, resizeScript, key, permits); err != nil {
		return fmt.Errorf("redissem: resize %q: %w", key, driver.InTime(ctx, err))
	}
	return nil
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases them. Then it waits until every uncertain
// acquisition has been released, or a TTL has passed. If ctx ends first, Close returns the error of ctx, and the rest
// expires by its TTL. Close ends the subscription, so remaining waiters only poll.
func (s *Semaphore) Close(ctx context.Context) error {
	return errors.Join(s.renewer.Close(ctx), s.notifier.Close(ctx), s.rollback.Close(ctx))
}

// waiterTTL is how long the store keeps a waiter that sends no request. It keeps a notified grant that is not renewed half as
// long again: less than the TTL.
func (s *Semaphore) waiterTTL() time.Duration { return 3*s.poll + s.timeout }

// run makes one call of a script about key.
func (s *Semaphore) run(ctx context.Context, script redisx.Script, key string, args ...any) (any, time.Time, error) {
	return s.calls.Run(ctx, script, s.keys(key), s.args(args...)...)
}

// args are args after those that all scripts have in common.
func (s *Semaphore) args(args ...any) []any {
	return append([]any{s.permits, s.ttl.Milliseconds(), s.waiterTTL().Milliseconds(), s.notifier.Channels()}, args...)
}
