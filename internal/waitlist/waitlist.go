package waitlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

// Outcomes of a wait, to be tested with errors.Is.
var (
	// ErrFull means that this process has as many waiters as it may have: in all, for the key, or of the
	// owner.
	ErrFull = errors.New("waitlist: too many wait")

	// ErrKey means that a key is not 1 to 128 letters, digits and . : _ -, which every
	// lock service takes.
	ErrKey = errors.New("waitlist: key is empty, too long, or has a character that is not allowed")
)

// Config is the configuration of a [Waitlist]. All processes that serve the
// same keys need the same services behind Lock, Cond and Line.
type Config struct {
	// Lock is held for a moment to look for units or to tell of them. Required. Its TTL
	// is how long notifications can be held up by a process that died with it.
	Lock dlock.Locker

	// Cond is a condition of the keys of Lock. Required.
	Cond dlock.Cond

	// Line is where waiters stand, and has to be first come, first served. Its TTL is how
	// long a dead waiter holds the line up, and how long a silent lock service keeps
	// those who stand in line from looking on their own: a few seconds.
	// The default is Lock, whose keys begin otherwise.
	Line dlock.Locker

	// Max is how many may wait in this process, for all keys together. 0 means 1,000. Those who wait for one
	// key leave as many places free for other keys as they have.
	Max int

	// MaxPerOwner is how many of one owner may wait in this process, for all keys together. 0 means 20.
	MaxPerOwner int

	// Recheck is how often the first in line looks without having been told. 0 means 1 s.
	Recheck time.Duration

	// OnError is told that the lock service failed: a notification of key was not sent,
	// or a waiter for key has no place in line. Nothing is wrong but lateness and
	// order. It must not block, and may be called by several goroutines at once.
	// Default: nobody is told.
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
	if c.Recheck < 0 {
		errs = append(errs, fmt.Errorf("recheck %v is negative", c.Recheck))
	}
	if c.Line == nil {
		c.Line = c.Lock
	}
	if c.OnError == nil {
		c.OnError = func(string, error) {}
	}
	c.Max = cmp.Or(c.Max, 1000)
	c.MaxPerOwner = cmp.Or(c.MaxPerOwner, 20)
	c.Recheck = cmp.Or(c.Recheck, time.Second)
	return errors.Join(errs...)
}

// Claim is what somebody waits to do.
type Claim struct {
	// Owner is who waits, for [Config.MaxPerOwner]. Empty: nobody in particular, of whom any number may wait.
	Owner string

	// Look reports whether Try may succeed. It is called often, with the lock of the key
	// held, so that it must be cheap and change nothing: one read. It has to see what was
	// committed before it was called. ctx ends within Recheck. If Look fails, Try is
	// called in order to find out.
	Look func(ctx context.Context) (bool, error)

	// Try takes the units and reports whether it did. It is called with no lock held
	// but the place in line, with the context that was given to Wait, and may take
	// seconds, during which those behind wait. False without an error means that there
	// was too little: the wait goes on. Any error ends it.
	Try func(ctx context.Context) (bool, error)
}

// Waitlist is a line for each key, shared by several processes. It is safe for
// concurrent use.
type Waitlist struct {
	cfg    Config
	places *places
	hands  chan struct{} // one for each that looks without a place in line
	notices
}

// strays is how many waiters without a place in line look or try at the same time.
const strays = 8

// New returns a Waitlist in which nobody waits. Notifications are sent while
// [Waitlist.Run] runs.
func New(c Config) (*Waitlist, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("waitlist: %w", err)
	}
	return &Waitlist{
		cfg:     c,
		places:  newPlaces(c.Max, c.MaxPerOwner),
		hands:   make(chan struct{}, strays),
		notices: newNotices(),
	}, nil
}

// Waiting returns how many wait in this process.
func (w *Waitlist) Waiting() int { return w.places.count() }

// Wait stands in line for key, and calls c.Try when this waiter is first and c.Look
// has found units, until Try succeeds. It looks at once when it becomes first, then
// whenever it is notified, and at least every Recheck.
//
// It blocks until Try succeeds or fails, or ctx ends; ctx should have a deadline. It
// returns nil when Try has succeeded, what Try returned, [ErrFull] or [ErrKey] at
// once, or the error and the cause of ctx when that ended first. The end of ctx does
// not cut Try short: that is for Try, which has the same ctx. A lock service that
// fails is no error: the wait goes on without order.
//
// When it returns the place in line is free, or as good as free within the TTL of
// Line. An error that is not from Try means that nothing was taken.
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
		line, err := w.cfg.Line.Acquire(ctx, lineKey(key))
		var done bool
		switch {
		case err == nil:
			done, err = t.first(ctx, line)
		case ctx.Err() == nil:
			w.cfg.OnError(key, fmt.Errorf("waitlist: stand in line: %w", err))
			done, err = t.stray(ctx, w.hands)
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

func lineKey(key string) string { return "line:" + key }

func unitsKey(key string) string { return "units:" + key }

// validKey reports whether every lock service takes key.
func validKey(key string) bool {
	const longest = 128
	if key == "" || len(key) > longest {
		return false
	}
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == ':':
		default:
			return false
		}
	}
	return true
}
