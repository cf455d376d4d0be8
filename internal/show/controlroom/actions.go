package controlroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/show/fleet"
)

// late is for how long a holder is made late: longer than a lease of a SKU lasts without renewal.
const late = 5 * time.Second

// action is something that a person can do to the room.
type action struct {
	member func(ctx context.Context, r *Room, m *member) error // nil: of a store
	store  func(ctx context.Context, r *Room) error
}

var actions = map[string]action{
	"pause": {member: func(_ context.Context, r *Room, m *member) error {
		return r.signal(m, []string{running}, standing, (*fleet.Instance).Pause)
	}},
	"resume": {member: func(_ context.Context, r *Room, m *member) error {
		return r.signal(m, []string{standing}, running, (*fleet.Instance).Resume)
	}},
	"late": {member: func(ctx context.Context, r *Room, m *member) error {
		if err := r.signal(m, []string{running}, standing, (*fleet.Instance).Pause); err != nil {
			return err
		}
		r.tasks.Go(func() {
			backoff.Sleep(ctx, late)
			r.signal(m, []string{standing}, running, (*fleet.Instance).Resume) //nolint:errcheck // somebody was quicker
		})
		return nil
	}},
	"kill": {member: func(_ context.Context, r *Room, m *member) error {
		return r.signal(m, []string{running, standing}, killing, (*fleet.Instance).Kill)
	}},
	"stop": {member: func(_ context.Context, r *Room, m *member) error {
		return r.signal(m, []string{running}, stopping, (*fleet.Instance).Stop)
	}},
	"start": {member: func(ctx context.Context, r *Room, m *member) error { return r.start(ctx, m) }},
	"cut-off": {member: func(_ context.Context, r *Room, m *member) error {
		return r.change(func() { m.cutOff = true })
	}},
	"reconnect": {member: func(_ context.Context, r *Room, m *member) error {
		return r.change(func() { m.cutOff = false })
	}},
	"redis-wipe": {store: func(ctx context.Context, r *Room) error {
		if r.redis == nil {
			return conflict{errors.New("this Redis is not the room's own, so it is not emptied")}
		}
		return r.redis.FlushAll(ctx).Err()
	}},
	"redis-pause":     {store: func(_ context.Context, r *Room) error { return r.change(func() { r.redisIs = paused }) }},
	"redis-slow":      {store: func(_ context.Context, r *Room) error { return r.change(func() { r.redisIs = slow }) }},
	"redis-resume":    {store: func(_ context.Context, r *Room) error { return r.change(func() { r.redisIs = healthy }) }},
	"database-pause":  {store: func(_ context.Context, r *Room) error { return r.change(func() { r.database = paused }) }},
	"database-slow":   {store: func(_ context.Context, r *Room) error { return r.change(func() { r.database = slow }) }},
	"database-resume": {store: func(_ context.Context, r *Room) error { return r.change(func() { r.database = healthy }) }},
	"database-disconnect": {store: func(_ context.Context, r *Room) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.members {
			if m.database != nil {
				m.database.Refuse()
			}
		}
		return r.line()
	}},
}

// change changes the faults of the lines.
func (r *Room) change(set func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	set()
	return r.line()
}

// errUnknown is a name that means nothing here.
var errUnknown = errors.New("there is none of that name")

// do carries out an action, of an instance if it is one of those. It returns when that is done: a process that was killed has gone.
func (r *Room) do(ctx context.Context, name, instance string) error {
	a, ok := actions[name]
	if !ok {
		return fmt.Errorf("action %q: %w", name, errUnknown)
	}
	if a.store != nil {
		return a.store(ctx, r)
	}
	for _, m := range r.members {
		if m.name == instance {
			return a.member(ctx, r, m)
		}
	}
	return fmt.Errorf("instance %q: %w", instance, errUnknown)
}
