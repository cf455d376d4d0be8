package stock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"example.com/shop/internal/dlock"
)

// Write is how a transaction changes the row of a SKU.
type Write int

// The writes. WriteBack and Version decide on a level that is read before the
// transaction begins; the others see the row that they change.
const (
	// WriteBack stores the level that was computed from the earlier read,
	// whatever the row holds by then.
	WriteBack Write = iota + 1

	// Conditional lets the database decide: it adds to reserved where enough
	// is available.
	Conditional

	// Version stores the computed level where the version is still the one
	// that was read, and otherwise fails with [ErrConflict].
	Version

	// RowLock reads the level with SELECT ... FOR UPDATE and writes it back.
	RowLock

	// Fenced claims the row with the fence of a lease, then reads the level
	// and writes it back. It fails with [dlock.ErrFenced] when the row has been
	// claimed with a newer fence.
	Fenced
)

// ReadsBefore reports whether w decides on a level read before the transaction.
func (w Write) ReadsBefore() bool { return w == WriteBack || w == Version }

// Strategy is a way to sell a SKU from several instances at once.
type Strategy struct {
	Name  string
	Guard Guard
	Write Write
}

// Claim is the right to change one SKU in one transaction, and how to use it.
type Claim struct {
	SKU   string
	Write Write
	Fence dlock.Fence // set for Fenced
}

// Strategies that cannot be had.
var (
	// ErrUnknownStrategy says that no strategy has the name.
	ErrUnknownStrategy = errors.New("stock: unknown strategy")

	// ErrStrategyUnavailable says that the strategy needs a store that this
	// instance was started without.
	ErrStrategyUnavailable = errors.New("stock: the strategy needs a store that is not configured")
)

// Strategies are the strategies of one instance, by name.
type Strategies struct {
	byName map[string]Strategy
	names  []string
}

// NewStrategies returns all strategies. The ones that take leases use redis;
// when it is nil they are known but unavailable.
func NewStrategies(redis dlock.Locker) *Strategies {
	s := &Strategies{byName: make(map[string]Strategy)}
	s.add("naive", unguarded, WriteBack)
	s.add("local", newMutexes().hold, WriteBack)
	s.add("conditional", unguarded, Conditional)
	s.add("optimistic", unguarded, Version)
	s.add("for-update", unguarded, RowLock)
	s.add("redis-unfenced", leased(redis), WriteBack)
	s.add("redis", leased(redis), Fenced)
	return s
}

func (s *Strategies) add(name string, g Guard, w Write) {
	s.byName[name] = Strategy{Name: name, Guard: g, Write: w}
	s.names = append(s.names, name)
}

// With returns a copy of s in which st stands for its name: a way to break a
// strategy on purpose and see who notices.
func (s *Strategies) With(st Strategy) *Strategies {
	c := &Strategies{byName: maps.Clone(s.byName), names: s.Names()}
	if _, ok := c.byName[st.Name]; !ok {
		c.names = append(c.names, st.Name)
	}
	c.byName[st.Name] = st
	return c
}

// Names returns the names of all strategies, weakest first.
func (s *Strategies) Names() []string { return slices.Clone(s.names) }

// Lookup returns the strategy with the given name, [ErrUnknownStrategy], or
// [ErrStrategyUnavailable].
func (s *Strategies) Lookup(name string) (Strategy, error) {
	st, ok := s.byName[name]
	if !ok {
		return Strategy{}, fmt.Errorf("%w %q", ErrUnknownStrategy, name)
	}
	if st.Guard == nil {
		return Strategy{}, fmt.Errorf("%w: %q", ErrStrategyUnavailable, name)
	}
	return st, nil
}

// Line is what an order wants of one SKU, and the strategy that the SKU is
// sold by.
type Line struct {
	SKU      string
	Strategy Strategy
}

// Hold runs fn while the guards of all lines are held, which it takes in the
// order of the lines: callers sort them by SKU, so that no two baskets wait for
// each other. It blocks until every guard is held or ctx ends. The context that
// fn receives ends when a guard is lost, with the cause.
//
// fn runs at most once. An error of fn is returned as it is; errors of a guard
// are those of [dlock.Locker.Acquire], and a loss while fn runs makes the error
// match [dlock.ErrLost].
func Hold(ctx context.Context, lines []Line, fn func(ctx context.Context, claims []Claim) error) error {
	return hold(ctx, lines, make([]Claim, 0, len(lines)), fn)
}

func hold(ctx context.Context, lines []Line, claims []Claim, fn func(context.Context, []Claim) error) error {
	if len(lines) == 0 {
		return fn(ctx, claims)
	}
	l := lines[0]
	return l.Strategy.Guard(ctx, l.SKU, func(ctx context.Context, f dlock.Fence) error {
		return hold(ctx, lines[1:], append(claims, Claim{SKU: l.SKU, Write: l.Strategy.Write, Fence: f}), fn)
	})
}
