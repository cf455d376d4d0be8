package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"example.com/shop/internal/cluster"
)

// keepEvery is how often the number of permits is compared with what they are set to.
const keepEvery = time.Second

// aDuration is the form of a duration, in words.
const aDuration = "a duration such as 90s, 15m or 1h30m"

// define names the settings that can be changed while instances run. Their defaults are the flags.
func (n *node) define(c Config) (err error) {
	n.permits, err = cluster.Define(n.settings, cluster.Key[int]{
		Name: "permits", Default: c.Permits, Parse: parsed("permits", "a whole number", strconv.Atoi), Validate: func(p int) error {
			if c.Permits == 0 && p != 0 {
				return errors.New("the instances were started with --permits 0, which has no bound")
			}
			return within("permits", p, min(c.Permits, 1), 1_000_000)
		},
	})
	if err != nil {
		return err
	}
	n.orderTTL, err = cluster.Define(n.settings, cluster.Key[time.Duration]{
		Name: "order-ttl", Default: c.OrderTTL, Parse: parsed("order-ttl", aDuration, time.ParseDuration), Validate: validOrderTTL,
	})
	if err != nil {
		return err
	}
	n.pace, err = cluster.Define(n.settings, cluster.Key[time.Duration]{
		Name: "reconciler-pace", Default: 20 * time.Second, Parse: parsed("reconciler-pace", aDuration, time.ParseDuration), Validate: func(d time.Duration) error {
			if d < 100*time.Millisecond || d > time.Minute {
				return fmt.Errorf("reconciler-pace %s: want 100ms to 1m", d)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	n.logLevel, err = cluster.Define(n.settings, cluster.Key[slog.Level]{
		Name: "log-level", Default: c.LogLevel,
		Parse: func(text string) (l slog.Level, err error) {
			if l.UnmarshalText([]byte(text)) != nil {
				return l, fmt.Errorf("log-level %q: want debug, info, warn or error", text)
			}
			return l, nil
		},
	})
	return err
}

// parsed returns parse with an error that names the setting, the text and the form that it wants.
func parsed[T any](name, form string, parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		if err != nil {
			err = fmt.Errorf("%s %q: want %s", name, text, form)
		}
		return v, err
	}
}

// within returns an error unless low <= n <= high.
func within(name string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%s %d: want %d to %d", name, n, low, high)
	}
	return nil
}

// reloadable has the parts of an instance that a change of the configuration reaches.
type reloadable struct {
	permits   func(ctx context.Context, n int) error
	permitted func() int // how many permits there are, as far as known
	orderTTL  func(time.Duration)
	pace      func(time.Duration)
	logLevel  *slog.LevelVar
}

// follow applies changes of the configuration.
func (n *node) follow(ctx context.Context, to reloadable) {
	var group sync.WaitGroup
	group.Go(func() { each(n.logLevel.Watch(ctx), to.logLevel.Set) })
	group.Go(func() { each(n.orderTTL.Watch(ctx), to.orderTTL) })
	group.Go(func() { each(n.pace.Watch(ctx), to.pace) })
	group.Go(func() { n.keepPermits(ctx, to) })
	group.Wait()
}

// each applies each of the changes.
func each[T any](changes iter.Seq2[T, int64], apply func(T)) {
	for value := range changes {
		apply(value)
	}
}

// withClusterSettings returns c with the shared settings in place of its flags. Otherwise an instance that starts
// would use its flags for its first orders, or for all instances.
func (n *node) withClusterSettings(c Config) Config {
	c.Permits, _ = n.permits.Get()
	c.OrderTTL, _ = n.orderTTL.Get()
	return c
}

// keepPermits sets the number of permits to the setting, until ctx ends: after each change, and again every second
// until that succeeds. Without the setting, the number is the default. The leader also corrects a number that
// differs. Redis may have lost its data, or an instance may have started when the configuration could not be read.
// Other instances do not, because their settings may be old.
func (n *node) keepPermits(ctx context.Context, to reloadable) {
	changes := make(chan int64)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		for _, version := range n.permits.Watch(ctx) {
			select {
			case changes <- version:
			case <-ctx.Done():
			}
		}
	})
	every := time.NewTicker(keepEvery)
	defer every.Stop()
	set, changed := false, false // set: at least once; changed: not yet applied
	for {
		select {
		case <-ctx.Done():
			return
		case version := <-changes:
			set = set || version > 0
			changed = set
		case <-every.C:
		}
		number, version := n.permits.Get()
		var err error
		switch {
		case changed:
			err = to.permits(ctx, number)
			changed = err != nil
		case version > 0 && n.settings.Stale() == nil && to.permitted() != number:
			_, err = n.lead.during(ctx, func(ctx context.Context, _ *cluster.Term) error {
				n.log.InfoContext(ctx, "number of permits differs from the setting; resizing", slog.Int("permits", number))
				return to.permits(ctx, number)
			})
		}
		if err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "permits not resized; retrying", slog.Int("permits", number), slog.String("error", err.Error()))
		}
	}
}
