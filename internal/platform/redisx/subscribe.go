package redisx

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	pingEvery  = time.Second            // how often a connection that receives messages is tried
	silentFor  = 3                      // after as many pings without an arrival it is given up
	retryPause = 150 * time.Millisecond // longest pause before another attempt to subscribe
)

// Why a connection ends that has not failed.
var (
	errSilent = errors.New("redisx: the connection for messages is silent")
	errMoved  = errors.New("redisx: the slot of the channel has moved to another node")
)

// Subscribe receives messages until ctx ends. For each connection it calls open, which subscribes to one channel. A
// connection that breaks, or is silent for 3 s, is replaced and never repaired: go-redis repairs it and hides the
// loss. Subscribe calls handle from its own goroutine with
//
//   - a *redis.Subscription when the server confirms that messages arrive from here on: earlier ones may be lost;
//   - a *redis.Message;
//   - the error that has ended a connection, or that no connection could be opened.
//
// Nothing is read while handle runs. If handle takes longer than 3 s, the connection counts as silent.
func Subscribe(ctx context.Context, open func() *redis.PubSub, handle func(message any)) {
	for ctx.Err() == nil {
		err := receive(ctx, open(), handle)
		if ctx.Err() != nil {
			return
		}
		handle(err)
		select {
		case <-time.After(retryPause/2 + rand.N(retryPause/2)):
		case <-ctx.Done():
		}
	}
}

// receive passes what arrives on sub to handle. It closes sub and returns when the connection breaks or is silent, when the
// channel has another node, or when ctx ends.
func receive(ctx context.Context, sub *redis.PubSub, handle func(message any)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer sub.Close()
	defer context.AfterFunc(ctx, func() { sub.Close() })()
	var arrived atomic.Bool
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	// go-redis replaces a broken connection with the context of the call, so that context has ended.
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	end()
	watching.Go(func() { watch(ctx, over, stop, sub, &arrived) })
	for {
		message, err := sub.Receive(over)
		if err != nil || ctx.Err() != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		arrived.Store(true)
		if s, ok := message.(*redis.Subscription); ok && s.Kind == "sunsubscribe" {
			return errMoved
		}
		handle(message)
	}
}

// watch stops a connection that cannot be written to, or on which nothing arrives, until ctx ends.
func watch(ctx, over context.Context, stop func(error), sub *redis.PubSub, arrived *atomic.Bool) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for silent := 0; ; silent++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if arrived.Swap(false) {
			silent = 0
		}
		if silent == silentFor {
			stop(errSilent)
			return
		}
		if err := sub.Ping(over); err != nil {
			stop(err)
			return
		}
	}
}
