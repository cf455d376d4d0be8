package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// oracle is a counter with prescribed results.
type oracle struct {
	say func(wanted []int64) ([]bool, error)

	mu      sync.Mutex
	takes   int
	open    map[string]bool
	settled []stock.Level
}

func (o *oracle) Take(_ context.Context, sku string, wanted []int64) (stock.Hold, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	granted, err := o.say(wanted)
	if err != nil {
		return stock.Hold{}, err
	}
	o.takes++
	t := stock.Hold{SKU: sku, ID: fmt.Sprint(sku, o.takes), Granted: granted}
	if o.open == nil {
		o.open = make(map[string]bool)
	}
	o.open[t.ID] = true
	return t, nil
}

func (o *oracle) Finish(t stock.Hold, l *stock.Level) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, t.ID)
	if l != nil {
		o.settled = append(o.settled, *l)
	}
}

func (*oracle) Flush(context.Context, string) {}

func all(granted bool) func([]int64) ([]bool, error) {
	return func(wanted []int64) ([]bool, error) {
		say := make([]bool, len(wanted))
		for i := range say {
			say[i] = granted
		}
		return say, nil
	}
}

// counted returns a service whose SKUs a and b, of ten units each, are sold by lua with o.
func counted(t *testing.T, o *oracle) (*order.Service, *sqlstore.Store) {
	t.Helper()
	lua, err := stock.NewStrategies(stock.Lockers{Units: o}).Lookup("lua")
	if err != nil {
		t.Fatal(err)
	}
	svc, store := setup(t, lua, order.Config{})
	t.Cleanup(func() {
		if len(o.open) > 0 {
			t.Errorf("takings that nobody has settled: %v", o.open)
		}
	})
	return svc, store
}

func short(t *testing.T, err error, want ...stock.Shortage) {
	t.Helper()
	e, ok := errors.AsType[*stock.ShortageError](err)
	if !ok {
		t.Errorf("not refused: %v", err)
		return
	}
	if diff := cmp.Diff(want, e.Shortages); diff != "" {
		t.Error(diff)
	}
}

// Units that exist can be had whatever a counter grants, and no others. A basket's error names all units that it is
// short of.
func TestACounterIsAdvice(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func([]int64) ([]bool, error){
		"all": all(true), "nothing": all(false), "it does not know": func([]int64) ([]bool, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc, store := counted(t, &oracle{say: say})
			place := func(items []order.Item) error {
				_, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: items})
				return err
			}
			for _, items := range [][]order.Item{units(4, "a"), units(3, "a", "b"), units(3, "a")} {
				if err := place(items); err != nil {
					t.Error(err)
				}
			}
			short(t, place(units(1, "a")), stock.Shortage{SKU: "a", Requested: 1})
			short(t, place(units(8, "b")), stock.Shortage{SKU: "b", Requested: 8, Available: 7})
			short(t, place(units(8, "a", "b")), stock.Shortage{SKU: "a", Requested: 8}, stock.Shortage{SKU: "b", Requested: 8, Available: 7})
			short(t, place(units(1, "a", "b")), stock.Shortage{SKU: "a", Requested: 1})
			exact(t, store, "a", 10)
			exact(t, store, "b", 3)
			if err := place(units(7, "b")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A counter without a level gets it before anything is taken, and then the level that each committed transaction has
// left.
func TestACounterReceivesTheLevel(t *testing.T) {
	t.Parallel()
	asked := 0
	o := &oracle{say: func(wanted []int64) ([]bool, error) {
		if asked++; asked == 1 {
			return nil, nil
		}
		return all(asked < 8)(wanted)
	}}
	svc, store := counted(t, o)
	for _, items := range [][]order.Item{units(4, "a"), units(7, "a"), units(3, "a", "b"), units(4, "a", "b"), units(9, "a")} {
		_, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: items})
		if _, refused := errors.AsType[*stock.ShortageError](err); err != nil && !refused {
			t.Fatal(err)
		}
	}
	if err := svc.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range o.settled {
		got = append(got, fmt.Sprint(l.SKU, l.Available(), "v", l.Version))
	}
	a, err := store.Level(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	v := a.Version
	want := []string{
		fmt.Sprint("a", 10, "v", v-2), fmt.Sprint("a", 6, "v", v-1), fmt.Sprint("a", 6, "v", v-1), fmt.Sprint("a", 3, "v", v), fmt.Sprint("b", 7, "v", v-1),
		fmt.Sprint("a", 3, "v", v), fmt.Sprint("b", 7, "v", v-1),
		fmt.Sprint("a", 3, "v", v), // which refused the last one
	}
	if o.takes == 7 { // on a slow machine the last one is refused by a look at the level, before it takes anything
		want = want[:len(want)-1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A counter that does not answer is an unavailable service: nothing is sold, and no order is refused as sold out. All
// orders of a batch get that error at once.
func TestACounterThatIsAway(t *testing.T) {
	t.Parallel()
	var takes atomic.Int64
	svc, store := counted(t, &oracle{say: func([]int64) ([]bool, error) {
		takes.Add(1)
		return nil, errors.New("no route to host")
	}})
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if _, err := svc.Place(t.Context(), one("a")); !errors.Is(err, stock.ErrLockAway) || errors.Is(err, order.ErrOutcomeUnknown) {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a", "b")}); !errors.Is(err, stock.ErrLockAway) {
		t.Error(err)
	}
	if n := takes.Load(); n > 21 {
		t.Errorf("%d takings were tried for 21 orders", n)
	}
	exact(t, store, "a", 0)
}

// doubtful is a store that forgets the outcome of its first commit, and then says so.
type doubtful struct {
	order.Store

	forgotten atomic.Bool
	forgot    func()
}

func (d *doubtful) Commit(ctx context.Context, group ...*order.Batch) error {
	err := d.Store.Commit(ctx, group...)
	if err != nil || d.forgotten.Swap(true) {
		return err
	}
	for _, b := range group {
		for _, r := range b.Requests {
			r.Answered, r.Uncertain, r.Err = false, true, nil
		}
	}
	d.forgot()
	return order.ErrOutcomeUnknown
}

// An order that may be stored is looked for, though the counter is away by now or has nothing left.
func TestACounterDoesNotDecideAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func([]int64) ([]bool, error){
		"away": func([]int64) ([]bool, error) { return nil, errors.New("no route to host") }, "nothing left": all(false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &oracle{say: all(true)}
			_, store := counted(t, o)
			d := &doubtful{Store: store, forgot: func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.say = then
			}}
			svc := order.NewService(d, stock.NewStrategies(stock.Lockers{Units: o}), order.Config{})
			got, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(10, "a")})
			if err != nil || got.Status != order.Pending {
				t.Errorf("%+v, %v", got, err)
			}
			exact(t, store, "a", 10)
		})
	}
}
