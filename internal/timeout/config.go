package timeout

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Base is the default partition.
const Base = "base"

// Config is the configuration of a [Queue].
type Config struct {
	// Instance names this process among those that share the database; empty
	// means a random name.
	Instance string

	// Partition is where this instance schedules, and what it consumes; empty means [Base].
	// If a partition has no consumer for 30 s, its timers move to Base.
	Partition string

	// Canary makes an instance that schedules and cancels, and never claims, scans
	// or looks ahead.
	Canary bool

	// Drain is how long running handlers may take to finish when Run ends, before
	// their context is cancelled; 0 means 10 s.
	Drain time.Duration

	// Entries is how many entries may wait to be sent to the index; 0 means 65,536. Further entries
	// are dropped and counted, and a pass or the overdue scan finds their timers.
	Entries int

	// Observer receives what the queue does; nil means none.
	Observer Observer

	// Trace returns the traceparent of a context, to be kept with what is
	// scheduled there; nil means none.
	Trace func(ctx context.Context) string
}

// Validate returns what is wrong with the configuration, or nil.
func (c Config) Validate() error {
	var errs []error
	if c.Partition != "" && !validName(c.Partition) {
		errs = append(errs, fmt.Errorf("%w: partition %q: give 1 to 32 letters, digits, dots, dashes and underscores", ErrInvalid, c.Partition))
	}
	if c.Drain < 0 || c.Entries < 0 {
		errs = append(errs, fmt.Errorf("%w: drain %v, entries %d: give none that is negative", ErrInvalid, c.Drain, c.Entries))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Instance = cmp.Or(c.Instance, rand.Text())
	c.Partition = cmp.Or(c.Partition, Base)
	c.Drain = cmp.Or(c.Drain, 10*time.Second)
	c.Entries = cmp.Or(c.Entries, 1<<16)
	if c.Observer == nil {
		c.Observer = NopObserver{}
	}
	if c.Trace == nil {
		c.Trace = func(context.Context) string { return "" }
	}
	return c
}

// Options say how timers of one kind are handled.
type Options struct {
	Batch    int           // how many timers a handler gets at once; 0 means 128, at most 1,000
	Attempts int           // attempts before a timer is dead; 0 means 10
	Backoff  time.Duration // bound of the pause after the first failure; it doubles, up to 5 min; 0 means 200 ms

	// Poll bounds how long a shard of the kind is not asked; 0 means 100 ms. A longer one is for a kind with few
	// timers. It delays only timers whose own delay is shorter and whose message is lost.
	Poll time.Duration
}

// Validate returns what is wrong with the options, or nil.
func (o Options) Validate() error {
	var errs []error
	if o.Batch < 0 || o.Batch > 1000 || o.Attempts < 0 {
		errs = append(errs, fmt.Errorf("%w: batch %d, attempts %d: give none that is negative, and a batch of at most 1000",
			ErrInvalid, o.Batch, o.Attempts))
	}
	if o.Backoff < 0 || o.Poll < 0 {
		errs = append(errs, fmt.Errorf("%w: backoff %v, poll %v: give none that is negative", ErrInvalid, o.Backoff, o.Poll))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.Batch = cmp.Or(o.Batch, 128)
	o.Attempts = cmp.Or(o.Attempts, 10)
	o.Backoff = cmp.Or(o.Backoff, 200*time.Millisecond)
	o.Poll = cmp.Or(o.Poll, 100*time.Millisecond)
	return o
}
