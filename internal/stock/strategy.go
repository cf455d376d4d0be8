package stock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
)

// Update is how a transaction changes the row of a SKU.
type Update int

// The updates. WriteBack and Version decide on a level that is read before the
// transaction begins; the others see the row that they change.
const (
	// WriteBack stores the level that was computed from the earlier read,
	// whatever the row holds by then.
	WriteBack Update = iota + 1

	// Conditional lets the database decide: it adds to reserved where enough
	// is available.
	Conditional

	// Version stores the computed level where the version is still the one
	// that was read, and otherwise fails with [ErrConflict].
	Version

	// RowLock reads the level with SELECT ... FOR UPDATE and writes it back.
	RowLock

	// Fenced is RowLock with the fencing token of a lease, which is written with the level. It fails with
	// [dlock.ErrFenced] when the row has accepted a newer token, or counts its tokens from another base.
	Fenced
)

// ReadsBefore reports whether u decides on a level read before the transaction.
func (u Update) ReadsBefore() bool { return u == WriteBack || u == Version }

// Lock takes the lock of sku. It blocks until the lock is held or ctx ends. After an error nothing is held.
type Lock func(ctx context.Context, sku string) (Held, error)

// Held is a lock that is held.
type Held struct {
	Context context.Context //nolint:containedctx // That of the work: it ends when the lock is lost, with the cause.
	Fence   dlock.Fence     // of the lease, if the lock is one

	// ValidUntil is that of the lease; nil: the lock is none, or it is unknown.
	ValidUntil func() time.Time

	Release func() // after the work
}

// Strategy is a way to sell a SKU from several instances at once.
type Strategy struct {
	Name   string
	Store  string // what it needs in addition to the database, by the name of the flag; empty: nothing
	Lock   Lock   // nil when the instance was started without the Store
	Update Update

	// RaisesCounter says that the lock service raises its fences when the row refuses one, as a
	// [dlock.CounterRaiser]: [Service.Rebase] is not for it.
	RaisesCounter bool

	// Cohort says that orders which want this SKU alone share the lock, and a transaction, with
	// others that this instance has; see package order.
	Cohort bool

	// Counter has the units taken before the transaction; nil: they are not.
	Counter Counter

	// Sharable says that orders need no lock, and may share a transaction with others.
	Sharable bool

	// Each is the service of the lease if it takes the leases of several SKUs at once; otherwise nil. It is the same for all
	// strategies that have one.
	Each dlock.EachLocker

	service dlock.Locker // that of the lock; may be nil
}

// Unavailable returns why no order is to wait for the lock service of the strategy now. It is nil if the
// service answers, and if nobody watches it.
func (s Strategy) Unavailable() error {
	if w, ok := s.service.(Watched); ok {
		return w.Unavailable()
	}
	return nil
}

// Leased reports whether the lock of the strategy is a lease.
func (s Strategy) Leased() bool { return s.service != nil && s.Counter == nil }

// Watched is a locker of which somebody knows whether its service answers.
type Watched interface {
	dlock.Locker

	// Unavailable returns why the service does not answer now, or nil. It does not block.
	Unavailable() error
}

// Claim is the right to change one SKU in one transaction, and how to use it.
type Claim struct {
	SKU    string
	Update Update
	Fence  dlock.Fence // for Fenced: that of the lease, counted from Base
	Base   uint64      // for Fenced: [Level.Base], read before the lease was asked for

	// Seen, if it is not nil, is for the level that a RowLock has found, as it is after the
	// transaction. It stays as it is when there was none.
	Seen *Level
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

// Lockers are the services that an instance was started with; the others are nil.
type Lockers struct {
	Redis     dlock.Locker
	Redlock   dlock.Locker // on a majority of Redis servers
	ZooKeeper dlock.Locker
	Etcd      dlock.Locker
	SQL       dlock.Locker // on the database of the shop

	Units Counter // of units, in Redis
}

// NewStrategies returns all strategies. Those whose locker is nil are known but
// unavailable.
func NewStrategies(l Lockers) *Strategies {
	s := &Strategies{byName: make(map[string]Strategy)}
	for _, st := range []Strategy{
		{Name: "naive", Lock: noLock, Update: WriteBack},
		{Name: "local", Lock: newMutexes().hold, Update: WriteBack},
		{Name: "conditional", Lock: noLock, Update: Conditional},
		{Name: "optimistic", Lock: noLock, Update: Version},
		{Name: "for-update", Lock: noLock, Update: RowLock},
		{Name: "redis-unfenced", Store: "redis", service: l.Redis, Update: WriteBack},
		{Name: "redis", Store: "redis", service: l.Redis, Update: Fenced, RaisesCounter: true},
		{Name: "redlock", Store: "redlock", service: l.Redlock, Update: Fenced, RaisesCounter: true},
		{Name: "zookeeper", Store: "zookeeper", service: l.ZooKeeper, Update: Fenced},
		{Name: "etcd", Store: "etcd", service: l.Etcd, Update: Fenced},
		{Name: "sql", service: l.SQL, Update: Fenced, RaisesCounter: true},
	} {
		if st.Lock == nil {
			st.Lock = leased(st.service)
		} else {
			st.Sharable = st.Name != "local" && !st.Update.ReadsBefore()
		}
		s.add(st)
	}
	for _, name := range s.Names() {
		if st := s.byName[name]; st.Update == Fenced {
			st.Name, st.Cohort = name+"-cohort", true
			if name == "redis" { // of which the lock takes several keys in one round trip
				st.Each, _ = st.service.(dlock.EachLocker)
			}
			s.add(st)
		}
	}
	s.add(Strategy{
		Name: "lua", Store: "redis", service: l.Redis, Lock: counted(l.Units), Update: RowLock, Cohort: true, Counter: l.Units,
	})
	return s
}

func (s *Strategies) add(st Strategy) {
	if _, ok := s.byName[st.Name]; !ok {
		s.names = append(s.names, st.Name)
	}
	s.byName[st.Name] = st
}

// With returns a copy of s in which st replaces the strategy of its name, for tests that break a strategy on purpose.
func (s *Strategies) With(st Strategy) *Strategies {
	c := &Strategies{byName: maps.Clone(s.byName), names: s.Names()}
	c.add(st)
	return c
}

// Names returns the names of all strategies, in the order of the table in the package comment.
func (s *Strategies) Names() []string { return slices.Clone(s.names) }

// Lookup returns the strategy with the given name, or [ErrUnknownStrategy]. With
// [ErrStrategyUnavailable] it returns one that has no lock.
func (s *Strategies) Lookup(name string) (Strategy, error) {
	st, ok := s.byName[name]
	if !ok {
		return Strategy{}, fmt.Errorf("%w: want %s, not %q", ErrUnknownStrategy, strings.Join(s.names, ", "), name)
	}
	if st.Lock == nil {
		return st, fmt.Errorf("%w: %q needs --%s", ErrStrategyUnavailable, name, st.Store)
	}
	return st, nil
}

// Offer is what an order wants of one SKU, and how the SKU is sold.
type Offer struct {
	SKU      string
	Strategy Strategy
	Base     uint64 // [Level.Base], read before the lock is taken
}

// Locks are the locks of offers, held.
type Locks struct {
	Context context.Context    //nolint:containedctx // That of the work: it ends when a lock is lost, with the cause.
	Claims  []Claim            // of the offers, in their order
	Valid   []func() time.Time // [Held].ValidUntil of each claim
	Asked   time.Time          // when Acquire was called
	Release func()             // releases the locks, the last one first; for the end of the work: after the commit
}

// Acquire takes the locks of all offers, in their order. Callers sort the offers by SKU, so that no two baskets wait for
// each other. It blocks until every lock is held or ctx ends. Errors are those of [dlock.Locker.Acquire]; after one of them
// nothing is held. If a lock is lost while Acquire waits for the next one, the error matches [dlock.ErrLost].
func Acquire(ctx context.Context, offers []Offer) (*Locks, error) {
	l := &Locks{Context: ctx, Asked: time.Now(), Release: func() {}}
	for _, o := range offers {
		held, err := o.Strategy.Lock(l.Context, o.SKU)
		if err == nil {
			others := l.Release
			l.Release = func() { held.Release(); others() }
			l.Context = held.Context //nolint:fatcontext // The work ends with any lock.
			l.Claims, l.Valid = append(l.Claims, o.Claim(held.Fence)), append(l.Valid, held.ValidUntil)
			err = context.Cause(l.Context)
		} else if lost := context.Cause(l.Context); errors.Is(lost, dlock.ErrLost) {
			err = fmt.Errorf("%w: %w", lost, err)
		}
		if err != nil {
			l.Release()
			return nil, err
		}
	}
	return l, nil
}

// Claim returns the claim of the holder of the lock of o, with the fence of its lease.
func (o Offer) Claim(f dlock.Fence) Claim {
	c := Claim{SKU: o.SKU, Update: o.Strategy.Update, Fence: f}
	if c.Update == Fenced {
		c.Base = o.Base
		c.Fence.Token += o.Base
	}
	return c
}
