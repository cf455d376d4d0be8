package redislock

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
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
type RW struct {
	rdb     redis.UniversalClient
	cfg     RWConfig
	first   time.Duration // how long Redis keeps a pushed grant
	recheck time.Duration // how often a waiter asks again
	prefix  string
	hub     *hub
	renewer *dlock.Renewer
	undoer  undoer
	sides   dlock.RWSides
}

var _ dlock.RWLocker = (*RW)(nil)

// rwPatience is how long the scripts believe in a waiter that does not ask again.
// All clients share it, whatever their TTL is.
const rwPatience = 3 * time.Second

// rwPushTTL is how long a grant lasts that was pushed to a waiter, which may have
// died since it asked last.
const rwPushTTL = 5 * time.Second

// NewRW returns an RW on rdb, which it does not close. It refuses the clients
// that [New] refuses.
func NewRW(rdb redis.UniversalClient, cfg RWConfig) (*RW, error) {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	if cfg.TTL < time.Millisecond {
		return nil, fmt.Errorf("redislock: TTL %v is less than a millisecond", cfg.TTL)
	}
	if err := checkClient(rdb); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	l := &RW{
		rdb:     rdb,
		cfg:     cfg,
		first:   min(cfg.TTL, rwPushTTL),
		recheck: min(time.Second, cfg.TTL/4),
		prefix:  cmp.Or(cfg.Prefix, rwPrefix),
		undoer:  undoer{timeout: cfg.Timeout},
	}
	l.hub = newHub(rdb, l.prefix, nil)
	l.renewer = dlock.NewRenewer(dlock.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	return l, nil
}

// Close stops to listen for pushes, and waits until every uncertain acquisition
// has been given back, or its TTL has passed, or ctx has ended: then it returns
// the error of ctx, and the rest is left to the TTL. Leases are not released; that
// is for their holders.
func (l *RW) Close(ctx context.Context) error {
	l.hub.close()
	return l.undoer.wait(ctx)
}

// run sends one script about key with the arguments that all of them begin with.
func (l *RW) run(ctx context.Context, script *redis.Script, key string, args ...any) *redis.Cmd {
	return script.Run(ctx, l.rdb, l.keys(key), l.args(key, args)...)
}

func (l *RW) args(key string, rest []any) []any {
	return append([]any{
		l.cfg.TTL.Milliseconds(), l.first.Milliseconds(), rwPatience.Milliseconds(),
		l.hub.command(), l.hub.channels(l.base(key)),
	}, rest...)
}

// lease turns a grant into what the caller gets.
func (l *RW) lease(ctx context.Context, a *rwAttempt, fence dlock.Fence, sent time.Time, first time.Duration) *dlock.Lease {
	g := dlock.Grant{
		Key: a.key, Fence: fence, Sent: sent, TTL: l.cfg.TTL, First: first,
		MaxHold: l.cfg.MaxHold, NoReentry: l.cfg.NoReentry,
		Kind: a.kind(), Backend: l.sides.Side(a.write), Renewer: l.renewer,
	}
	g.Release = func(ctx context.Context) error { return l.release(ctx, a, fence) }
	return dlock.NewLease(ctx, g)
}

// release gives one grant back. Of a large phase that begins with that, it lets
// in all: the scripts do so in parts, to stay short.
func (l *RW) release(ctx context.Context, a *rwAttempt, fence dlock.Fence) error {
	token := strconv.FormatUint(fence.Token, 10)
	reply, err := l.run(ctx, rwReleaseScript, a.key, a.id, a.mode(), token).Int64Slice()
	if err != nil {
		return err
	}
	l.admit(ctx, a.key, reply[1])
	return rwVerdict(a.key, fence, reply[0])
}

// admit goes on for as long as there is more. If it cannot, those who wait do so
// by asking again.
func (l *RW) admit(ctx context.Context, key string, more int64) {
	for more == 1 {
		next, err := l.run(ctx, rwAdmitScript, key).Int64()
		if err != nil {
			return
		}
		more = next
	}
}

// renew renews the grants of many keys in one round trip, with one script per key.
func (l *RW) renew(ctx context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	places := map[string][]int{} // of each key in held
	var keys []string
	for i, h := range held {
		if places[h.Key] == nil {
			keys = append(keys, h.Key)
		}
		places[h.Key] = append(places[h.Key], i)
	}
	args := func(key string) []any {
		var all []any
		for _, i := range places[key] {
			id, mode := rwOwner(held[i])
			all = append(all, id, mode, held[i].Fence.Token)
		}
		return all
	}
	replies := make([]*redis.Cmd, len(keys))
	pipe := l.rdb.Pipeline()
	for i, key := range keys {
		replies[i] = rwRenewScript.EvalSha(ctx, pipe, l.keys(key), l.args(key, args(key))...)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for i, key := range keys {
		if redis.HasErrorPrefix(replies[i].Err(), "NOSCRIPT") {
			replies[i] = l.run(ctx, rwRenewScript, key, args(key)...)
		}
		verdicts, err := replies[i].Int64Slice()
		for n, place := range places[key] {
			if errs[place] = err; err == nil {
				errs[place] = rwVerdict(key, held[place].Fence, verdicts[n])
			}
		}
	}
	return errs
}

// rwVerdict reads what rwlock_renew.lua and rwlock_release.lua say of one grant.
func rwVerdict(key string, fence dlock.Fence, n int64) error {
	switch n {
	case verdictGone:
		return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Expired}
	case verdictTaken:
		return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Taken}
	}
	return nil
}
