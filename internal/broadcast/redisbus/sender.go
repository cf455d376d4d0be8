package redisbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
)

// maxBatch bounds the frames of one pipeline, and with it how long the server is kept
// from others.
const maxBatch = 256

// retryPause is the longest pause between two attempts to send or to subscribe.
const retryPause = 150 * time.Millisecond

// once is a command that no client sends again by itself: a message is sent at most
// once. A redirect in a Cluster is followed, for a command that is redirected was not
// executed.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// send is the goroutine that sends what is in the outbox, one pipeline after the other,
// so that messages arrive in the order of their numbers. While one is on its way the next
// ones collect. It returns when ctx has ended and the rest has been sent.
func (b *Bus) send(ctx context.Context) {
	tick := time.NewTicker(b.cfg.Silence / beats)
	defer tick.Stop()
	on := context.WithoutCancel(ctx)
	b.transmit(on, b.out.beat()) // so that others know of this origin before it has anything to say
	for quiet := false; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-b.out.wake:
		case <-tick.C:
			if quiet {
				b.transmit(on, b.out.beat())
			}
			quiet = true
		}
		for ctx.Err() == nil {
			batch := b.out.take()
			if len(batch) == 0 {
				break
			}
			quiet = false
			switch b.transmit(on, batch) {
			case unsent:
				b.out.putBack(batch)
				backoff.Jitter(ctx, retryPause)
			case failed:
				backoff.Jitter(ctx, retryPause)
			case taken:
			}
		}
	}
	b.out.close()
	last, cancel := context.WithTimeout(on, b.cfg.Timeout)
	defer cancel()
	for batch := b.out.take(); len(batch) > 0; batch = b.out.take() {
		if b.transmit(last, batch) == unsent {
			b.out.putBack(batch)
			backoff.Jitter(last, retryPause)
		}
	}
}

// outcome is what became of a pipeline.
type outcome int

const (
	taken  outcome = iota // the server has all of it
	failed                // the server may lack some of it, or all
	unsent                // nothing of it has left this process: there was no connection
)

// transmit sends frames, once. It ends after Config.Timeout. Send gives it a context that lasts: what is on its way is not
// given up because the process ends.
func (b *Bus) transmit(ctx context.Context, frames []frame) outcome {
	if len(frames) == 0 {
		return taken
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	pipe := b.rdb.Pipeline()
	packets := pack(frames)
	replies := make([]*redis.Cmd, len(packets))
	for i, p := range packets {
		replies[i] = redis.NewCmd(ctx, b.publish, b.cfg.Channel, p.text)
		replies[i].SetFirstKeyPos(1)
		pipe.Process(ctx, once{replies[i]}) //nolint:errcheck // It only queues.
	}
	b.echo.sending(time.Now())
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	var failure error
	var missing uint64
	unconnected := true
	for i, p := range packets {
		err := replies[i].Err()
		if err != nil {
			failure = err
			missing += p.messages
		}
		e, ok := errors.AsType[*net.OpError](err)
		unconnected = unconnected && ok && e.Op == "dial"
	}
	if failure != nil {
		b.echo.reset()
		if !b.failing {
			b.cfg.OnError(fmt.Errorf("redisbus: send to %s: %w", b.cfg.Channel, failure))
		}
	}
	b.failing = failure != nil
	switch {
	case failure == nil:
		return taken
	case unconnected && ctx.Err() == nil:
		return unsent
	}
	b.failed.Add(missing)
	return failed
}
