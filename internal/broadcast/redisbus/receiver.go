package redisbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/broadcast"
)

const (
	// beats is how often something arrives in the time of Config.Silence, if all is well.
	beats = 3

	// forget is after how many times Config.Silence an origin counts as dead.
	forget = 4
)

// Why a connection is given up that has not failed.
var (
	errUnheard = errors.New("this process does not hear itself: another server takes what is sent")
	errMoved   = errors.New("the channel has moved to another server")
)

// listen is the goroutine that keeps a connection for messages open until ctx ends. Each
// is opened anew and not repaired: only so is it certain that no loss goes unnoticed, and
// the server may be another one.
func (b *Bus) listen(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		live, err := b.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		b.fan.Down()
		if live || !failing {
			b.cfg.OnError(fmt.Errorf("redisbus: listen to %s: %w", b.cfg.Channel, err))
		}
		failing = true
		if b.cluster != nil {
			b.cluster.ReloadState(ctx)
		}
		backoff.Jitter(ctx, retryPause)
	}
}

// hear receives on one connection until that fails, is silent, or ctx ends. It reports
// whether messages could arrive meanwhile.
//
// The client must not open a connection in place of one that has failed, and with it
// hide the loss: it would do so with the context that it is given for receiving, so that
// has ended. For receiving itself the context has no meaning, as the deadline is separate.
func (b *Bus) hear(ctx context.Context) (live bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	sub, err := b.open(ctx)
	if err != nil {
		return false, err
	}
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	end()
	watching.Go(func() { b.watch(ctx, over, stop, sub) })
	var since time.Time // when the server has confirmed the subscription
	for limit := b.cfg.Timeout; ; {
		message, err := sub.ReceiveTimeout(over, limit)
		if err != nil {
			return live, cmp.Or(context.Cause(ctx), err)
		}
		switch m := message.(type) {
		case *redis.Message:
			b.take(m.Payload, live)
		case *redis.Subscription:
			if m.Kind != "subscribe" && m.Kind != "ssubscribe" {
				return live, errMoved // sunsubscribe, by a server that has no longer the slot
			}
			if live {
				b.fan.Down() // the client has another connection all the same
			}
			live, limit, since = false, b.cfg.Silence, time.Now()
			if !b.settled.Load() {
				b.out.tell(hello)
			}
		}
		switch {
		case live:
			b.count()
		case !since.IsZero() && (b.settled.Load() || time.Since(since) >= b.cfg.Settle):
			b.settled.Store(true)
			live = true
			b.up()
		}
	}
}

// open subscribes on a new connection. The server has not confirmed it yet.
func (b *Bus) open(ctx context.Context) (*redis.PubSub, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	var sub *redis.PubSub
	var err error
	if b.cluster != nil {
		sub = b.cluster.SSubscribe(ctx)
		err = sub.SSubscribe(ctx, b.cfg.Channel)
	} else {
		sub = b.rdb.Subscribe(ctx)
		err = sub.Subscribe(ctx, b.cfg.Channel)
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// watch is the goroutine beside hear that has something arrive, and closes sub when ctx
// ends or what arrives is not what is sent.
func (b *Bus) watch(ctx, over context.Context, stop context.CancelCauseFunc, sub *redis.PubSub) {
	every := b.cfg.Silence / beats
	if !b.settled.Load() {
		every = max(b.cfg.Settle/2, time.Millisecond) // which has hear look at the time
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if b.echo.missing(now) > b.cfg.Silence {
				stop(errUnheard)
				return
			}
			if err := sub.Ping(over); err != nil {
				stop(err)
				return
			}
			if b.settled.Load() {
				tick.Reset(b.cfg.Silence / beats)
			}
		}
	}
}

// up tells subscriptions that messages arrive.
func (b *Bus) up() {
	b.echo.reset()
	b.origins.resume(time.Now())
	b.fan.Up()
}

// take passes on what arrived. It runs in the goroutine of listen. What comes before subscriptions have
// been told that messages arrive is not theirs, and nothing of it that is lost: it only says who is there, and how far.
func (b *Bus) take(text string, live bool) {
	if !unpack(text, func(f frame) { b.follow(f, live) }) {
		b.foreign.Add(1)
	}
}

func (b *Bus) follow(f frame, live bool) {
	id := f.message.ID
	switch own := id.Origin == b.self.Origin && id.Epoch == b.self.Epoch; {
	case own:
		b.echo.heard()
	case f.kind == hello:
		b.out.tell(beat)
	}
	fresh, lost := b.origins.follow(f, time.Now())
	if !live {
		return
	}
	if lost != nil {
		b.fan.Miss(*lost)
	}
	if fresh {
		b.fan.Deliver(f.message)
	}
}

// count tells subscriptions of origins that are heard no more.
func (b *Bus) count() {
	for _, name := range b.origins.silent(time.Now(), forget*b.cfg.Silence) {
		b.fan.Miss(broadcast.Missed{Reason: broadcast.Gap, Origin: name})
	}
}
