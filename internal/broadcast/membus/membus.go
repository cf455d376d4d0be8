package membus

import (
	"context"
	"errors"

	"example.com/shop/internal/broadcast"
)

// Bus is one process on a Hub.
type Bus struct {
	hub *Hub
	fan *broadcast.Fanout

	state  state // this and the origin are guarded by hub.mu
	origin *broadcast.Origin
}

type state int

const (
	fresh state = iota
	running
	ended
)

var _ broadcast.Bus = (*Bus)(nil)

// New returns a Bus on a hub; nil is a hub of its own. It fails with
// [broadcast.ErrInvalid] if the configuration is not valid.
func New(hub *Hub, cfg Config) (*Bus, error) {
	if hub == nil {
		hub = &Hub{}
	}
	origin, err := broadcast.NewOrigin(cfg.Instance)
	fan, invalid := broadcast.NewFanout(cfg.Queue)
	if err := errors.Join(err, invalid); err != nil {
		return nil, err
	}
	return &Bus{hub: hub, fan: fan, origin: origin}, nil
}

// Publish implements [broadcast.Bus]. It never fails with ErrFull.
func (b *Bus) Publish(topic, payload string) error {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	if b.state == ended {
		return broadcast.ErrClosed
	}
	m, err := b.origin.Number(topic, payload)
	if err != nil || b.hub.deaf {
		return err
	}
	for other := range b.hub.buses {
		other.fan.Deliver(m)
	}
	return nil
}

// Subscribe implements [broadcast.Bus].
func (b *Bus) Subscribe(patterns ...string) (*broadcast.Subscription, error) {
	return b.fan.Subscribe(patterns...)
}

// Stats implements [broadcast.Bus].
func (b *Bus) Stats() broadcast.Stats {
	s := b.fan.Stats()
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	s.Published = b.origin.Last().Seq
	return s
}

// Run implements [broadcast.Bus].
func (b *Bus) Run(ctx context.Context) error {
	if !b.begin() {
		return errors.New("membus: Run is called twice")
	}
	<-ctx.Done()
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	b.state = ended
	delete(b.hub.buses, b)
	b.fan.Close()
	return nil
}

func (b *Bus) begin() bool {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	if b.state != fresh {
		return false
	}
	b.state = running
	if b.hub.buses == nil {
		b.hub.buses = map[*Bus]struct{}{}
	}
	b.hub.buses[b] = struct{}{}
	if !b.hub.deaf {
		b.fan.Up()
	}
	return true
}
