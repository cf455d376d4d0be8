package redisbus

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of a [Bus].
type Config struct {
	// Instance is the name of the process, up to 64 printable ASCII characters without
	// spaces. Empty means a random one.
	Instance string

	// Channel is where the processes meet, up to 200 printable ASCII characters without
	// spaces. Who is to hear one another has the same. Redis does not keep channels of its
	// databases apart. Empty means "shop:broadcast:{all}".
	Channel string

	// Queue is how many events a subscription has room for. 0 means 256.
	Queue int

	// Outbox is how many messages may wait to be sent. 0 means 4,096.
	Outbox int

	// Silence is after how long a connection on which nothing arrives is given up. Three
	// times as often something arrives, if all is well. 0 means 3 s; at least 30 ms.
	Silence time.Duration

	// Timeout bounds one round trip: an attempt to connect, a batch that is sent, and what
	// is sent when Run ends. 0 means 1 s, or Silence if that is shorter; at most Silence.
	Timeout time.Duration

	// Settle is for how long a process that has just begun to listen hears the others before its
	// subscriptions do: what it has heard of nobody until then may have been lost. 0 means 100 ms, or a
	// third of Silence if that is shorter; at most Silence.
	Settle time.Duration

	// OnError is told when something begins to fail: the connection on which messages
	// arrive, or the sending. It is not told of every attempt. It must not block. Nil means
	// that nobody is told.
	OnError func(error)
}

// Validate returns what is wrong with the configuration, or nil.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if len(c.Channel) > 200 || strings.ContainsFunc(c.Channel, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, fmt.Errorf("channel %.100q: give up to 200 printable ASCII characters without spaces", c.Channel))
	}
	if c.Queue < 0 || c.Outbox < 0 {
		errs = append(errs, fmt.Errorf("queue %d, outbox %d: give none that is negative", c.Queue, c.Outbox))
	}
	if c.Silence < 30*time.Millisecond || c.Timeout <= 0 || c.Timeout > c.Silence || c.Settle <= 0 || c.Settle > c.Silence {
		errs = append(errs, fmt.Errorf("silence %v, timeout %v, settle %v: give a silence of at least 30 ms, and the others at most that", c.Silence, c.Timeout, c.Settle))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Channel = cmp.Or(c.Channel, "shop:broadcast:{all}")
	c.Outbox = cmp.Or(c.Outbox, 4096)
	c.Silence = cmp.Or(c.Silence, 3*time.Second)
	c.Timeout = cmp.Or(c.Timeout, min(time.Second, c.Silence))
	c.Settle = cmp.Or(c.Settle, min(100*time.Millisecond, c.Silence/3))
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return c
}
