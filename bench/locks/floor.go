package main

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
)

// node is what a store is asked by a client of the floor.
type node struct {
	create, remove func(ctx context.Context, name string) error
	gone           func(ctx context.Context, name string) error // waits until there is no such node
}

// queue records who came last for each key.
type queue struct {
	number atomic.Int64
	mu     sync.Mutex
	last   map[string]string
}

// enter makes name the last for key, and returns who was that before, or nothing.
func (q *queue) enter(key, name string) (before string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, q.last[key] = q.last[key], name
	return before
}

// leave is for name, which may be the last one still.
func (q *queue) leave(key, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last[key] == name {
		delete(q.last, key)
	}
}

// floorOn does the least that a lock with a queue asks of a store. It commits a new place, commits its end, and sends
// the event of the end to the next waiter. The queue itself is in the memory of this process, so it is no distributed
// lock.
func floorOn(on func(open func(node) (*client, error)) func(context.Context, *servers) (*client, error)) subject {
	q := &queue{last: map[string]string{}}
	return subject{name: "floor", open: on(func(n node) (*client, error) {
		return &client{acquire: func(ctx context.Context, key string) (func(context.Context) error, error) {
			name := key + "-" + strconv.FormatInt(q.number.Add(1), 10)
			if err := n.create(ctx, name); err != nil {
				return nil, err
			}
			if before := q.enter(key, name); before != "" {
				if err := n.gone(ctx, before); err != nil {
					return nil, err
				}
			}
			return func(ctx context.Context) error {
				defer q.leave(key, name) // not before: who comes next must wait for the commit
				return n.remove(ctx, name)
			}, nil
		}}, nil
	})}
}
