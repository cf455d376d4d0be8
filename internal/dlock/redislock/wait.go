package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/redisx"
)

// queue takes key, or waits for it in its queue. The grant comes as the answer
// to an attempt or as a push; attempts are repeated because a push can be lost,
// and because Redis takes a waiter for dead that is not heard of.
func (l *Locker) queue(ctx context.Context, key string) (*dlock.Lease, error) {
	id := l.hub.NewID()
	w := l.hub.Join(ctx, keysOf(l.cfg.Prefix, key).lock, id)
	defer w.Leave()
	var (
		queued time.Time // when Redis last confirmed the place in the queue
		doubt  bool      // an attempt was sent and not answered
	)
	lease := func(g granted) *dlock.Lease {
		if doubt { // that attempt may arrive when the grant is over, and take the key for nobody
			g.ended = func(error) { l.abandon(ctx, key, id) }
		}
		return l.lease(ctx, key, g)
	}
	leave := func(why error) error {
		if doubt {
			l.abandon(ctx, key, id)
		}
		return l.leave(ctx, key, id, why)
	}
	for {
		sent := time.Now()
		a, err := l.attempt(ctx, key, id, l.hub.Stamp(sent))
		doubt = doubt || errors.Is(err, dlock.ErrUncertain)
		switch {
		case err == nil && a.token != 0:
			return lease(a.grant(id)), nil
		case err == nil && a.again:
			continue
		case err == nil:
			queued = sent
		case ctx.Err() != nil || time.Since(queued) > l.cfg.TTL: // the first one, or the last of many
			if !queued.IsZero() || doubt {
				err = leave(err)
			}
			return nil, err
		}
		g, err := l.listen(ctx, w, a.ttl)
		if err != nil {
			return nil, leave(err)
		}
		if g.fence.Token != 0 {
			return lease(g), nil
		}
	}
}

// listen waits for a push. It returns no grant when it is time to look again.
func (l *Locker) listen(ctx context.Context, w *redisx.Wait, ttl time.Duration) (granted, error) {
	pause := l.recheck()*8/10 + rand.N(l.recheck()*2/10)
	if lapse := ttl + time.Millisecond + rand.N(l.recheck()/10); ttl > 0 && lapse < pause {
		pause = lapse // the holder may have died
	}
	again := time.NewTimer(pause)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return granted{}, dlock.Ended(ctx)
	case <-again.C:
		return granted{}, nil
	case push := <-w.Pushes:
		return l.pushed(w.ID, push), nil
	}
}

// pushed reads TOKEN STAMP. It returns no grant if the trust that the stamp
// allows has nearly run out: then an attempt finds out, and begins a new window.
func (l *Locker) pushed(id, push string) granted {
	token, stamp, _ := strings.Cut(push, " ")
	n, err := strconv.ParseUint(token, 10, 64)
	sent, ok := l.hub.Sent(stamp)
	if err != nil || !ok || time.Since(sent) > l.hand()/2 {
		return granted{}
	}
	return granted{fence: dlock.Fence{Token: n, Owner: id}, sent: sent, first: l.hand()}
}

// leave gives up what the waiter has, for a caller whose context has ended or
// who has failed: its place in the queue, or a grant that is on its way. It
// waits for Redis for a moment, so that usually nothing is left when Acquire returns.
func (l *Locker) leave(ctx context.Context, key, id string, why error) error {
	if errors.Is(why, dlock.ErrUncertain) {
		return why // it is being given back
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Timeout/4)
	defer cancel()
	k := keysOf(l.cfg.Prefix, key)
	_, _, err := l.calls.Run(ctx, abandonScript, k.all(), l.args(k, id)...)
	if err == nil {
		return why
	}
	l.abandon(ctx, key, id)
	return fmt.Errorf("%w: %w", dlock.ErrUncertain, why)
}
