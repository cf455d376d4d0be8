package waitlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
)

// Outcomes of a wait, to be tested with errors.Is.
var (
	// ErrFull means that this process has too many waiters: in all, for the key, or of the
	// owner.
	ErrFull = errors.New("waitlist: too many waiters")

	// ErrKey means that a key is not 1 to 128 letters, digits and . : _ -, which every
	// lock service accepts.
	ErrKey = errors.New("waitlist: key is empty, too long, or has a character that is not allowed")
)

// Config is the configuration of a [Waitlist]. All processes that serve the
// same keys need the same services behind Lock, Cond and Queue.
type Config struct {
	// Lock is held for a moment to poll for units or to notify waiters. Required. If a process dies with
	// the lock, notifications are delayed by its TTL.
	Lock dlock.Locker

	// Cond is a condition of the keys of Lock. Required.
	Cond dlock.Cond

	// Queue is the lock that waiters queue for. It must be first come, first served, as redislock is.
	// A dead waiter blocks the queue for its TTL. While the lock service does not answer, waiters
	// poll only after that TTL. So set it to a few seconds. The default is Lock, with keys of another prefix.
	Queue dlock.Locker

	// Max limits the waiters of this process, for all keys together. 0 means 1,000. The waiters for one
	// key leave as many places free for other keys as they have.
	Max int

	// MaxPerOwner limits the waiters of one owner in this process, for all keys together. 0 means 20.
	MaxPerOwner int

	// FallbackPoll is the interval at which the first waiter polls without a notification. 0 means 1 s.
	FallbackPoll time.Duration

	// OnError is called if the lock service failed: a notification of key was not sent, or a waiter for key lacks a
	// place. Only delay and order are affected. It must not block, and may be called concurrently. Default: no call.
	OnError func(key string, err error)
}

// validate completes the configuration.
func (c *Config) validate() error {
	var errs []error
	if c.Lock == nil || c.Cond == nil {
		errs = append(errs, errors.New("a lock and a condition that belongs to it are required"))
	}
	if c.Max < 0 || c.MaxPerOwner < 0 {
		errs = append(errs, fmt.Errorf("max %d or max per owner %d is negative", c.Max, c.MaxPerOwner))
	}
	if c.FallbackPoll < 0 {
		errs = append(errs, fmt.Errorf("fallback poll %v is negative", c.FallbackPoll))
	}
	if c.Queue == nil {
		c.Queue = c.Lock
	}
	if c.OnError == nil {
		c.OnError = func(string, error) {}
	}
	c.Max = cmp.Or(c.Max, 1000)
	c.MaxPerOwner = cmp.Or(c.MaxPerOwner, 20)
	c.FallbackPoll = cmp.Or(c.FallbackPoll, time.Second)
	return errors.Join(errs...)
}

// Claim is the purpose of a wait.
type Claim struct {
	// Owner is counted for [Config.MaxPerOwner]. Empty: no limit per owner.
	Owner string

	// Poll reports whether Try may succeed. It is called often, with the lock of the key
	// held, so it must be cheap and change nothing: one read. It must see everything that was
	// committed before its call. ctx ends within FallbackPoll. If Poll fails, Try is
	// called and returns the error.
	Poll func(ctx context.Context) (bool, error)

	// Try takes the units and reports whether it did. The caller holds its place in the queue and no other lock.
	// Try gets the context of Wait and may take
	// seconds, during which later waiters wait. False without an error means that there
	// were too few units: the wait continues. An error ends the wait.
	Try func(ctx context.Context) (bool, error)
}

// Waitlist is a queue for each key, shared by several processes. It is safe for
// concurrent use.
//
// In Redis, per second: some six commands for the first waiter of each key, and one for each later waiter. If the TTL
// of Config.Queue is less than 4 s, a later waiter sends one in each quarter of it. In the database: two polls per
// FallbackPoll for each key, and two for each wake-up, whatever the number of waiters. Each process notifies a key at
// most a hundred times per second, however often Notify is called.
type Waitlist struct {
	cfg    Config
	places *places
	slots  chan struct{} // an element for each waiter that polls without a place in the queue
	notices
}

// strays limits the waiters without a place in the queue that poll or try at the same time.
const strays = 8

// New returns a Waitlist without waiters. Notifications are sent while
// [Waitlist.Run] runs.
func New(c Config) (*Waitlist, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("waitlist: %w", err)
	}
	return &Waitlist{
		cfg:     c,
		places:  newPlaces(c.Max, c.MaxPerOwner),
		slots:   make(chan struct{}, strays),
		notices: newNotices(),
	}, nil
}

// Waiting returns the number of waiters of this process.
func (w *Waitlist) Waiting() int { return w.places.count() }

// Wait waits in the queue for key, and calls c.Try when this waiter is first and c.Poll
// has found units, until Try succeeds. It polls at once when it becomes first, then
// after each notification, and at least every FallbackPoll.
//
// It blocks until Try succeeds or fails, or ctx ends; ctx should have a deadline. It returns nil if Try succeeded, or
// the error of Try. It returns [ErrFull] or [ErrKey] at once, and the error and the cause of ctx if ctx ended first.
// Wait does not interrupt a Try at the end of ctx; Try has the same ctx and decides. A failing lock service is no
// error: the wait continues without order.
//
// When it returns, the place in the queue is free, at the latest after the TTL of
// Queue. After an error that is not from Try, no units were taken.
func (w *Waitlist) Wait(ctx context.Context, key string, c Claim) error {
	if !validKey(key) {
		return fmt.Errorf("%w: %q", ErrKey, key)
	}
	if ctx.Err() != nil {
		return dlock.Ended(ctx)
	}
	leave, err := w.places.enter(key, c.Owner)
	if err != nil {
		return err
	}
	defer leave()
	t := &turn{cfg: &w.cfg, key: key, claim: c}
	for {
		queue, err := w.cfg.Queue.Acquire(ctx, queueKey(key))
		var done bool
		switch {
		case err == nil:
			done, err = t.first(ctx, queue)
		case ctx.Err() == nil:
			w.cfg.OnError(key, fmt.Errorf("waitlist: wait in the queue: %w", err))
			done, err = t.stray(ctx, w.slots)
		default:
			return dlock.Ended(ctx)
		}
		if done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return dlock.Ended(ctx)
		}
	}
}

// Every key in the lock service is built here.

func queueKey(key string) string { return "line:" + key }

func unitsKey(key string) string { return "units:" + key }

// validKey reports whether every lock service accepts key.
func validKey(key string) bool {
	const (
		longest = 128
		allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:"
	)
	return key != "" && len(key) <= longest && strings.Trim(key, allowed) == ""
}
