package app

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// reign is what is known of the terms of all candidates.
type reign struct {
	store *sqlstore.Store

	mu    sync.Mutex
	names []string // of the leaders, in the order in which they were elected
	terms []*cluster.Term

	late, refused atomic.Int64 // work of those whose term was over: what was accepted of it, and who was refused
	overdue       sync.WaitGroup
}

// lead does the leader's work until the term ends. Then it continues in the background, as a leader that has noticed
// nothing, until it is refused or on ends.
func (r *reign) lead(ctx, on context.Context, t *testing.T, l *leadership, term *cluster.Term) error {
	t.Helper()
	name := term.Leader().Name
	hold := func(ctx context.Context, tx timeout.Tx) error { return l.election.Hold(ctx, tx, term.Leader()) }
	r.mu.Lock()
	for i, before := range r.terms {
		if before != term && before.Err() == nil && term.Err() == nil {
			t.Errorf("%s leads, and so does %s", name, r.names[i])
		}
	}
	r.names, r.terms = append(r.names, name), append(r.terms, term)
	r.mu.Unlock()
	r.overdue.Go(func() { r.goOn(on, t, hold, term) })
	var err error
	for err == nil {
		time.Sleep(5 * time.Millisecond) // leaves the machine to others
		_, err = r.store.PurgeAnswers(ctx, hold, time.Hour, 1)
	}
	return err
}

func (r *reign) goOn(ctx context.Context, t *testing.T, hold func(context.Context, timeout.Tx) error, term *cluster.Term) {
	t.Helper()
	for ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond) // leaves the machine to others
		over := term.Err() != nil
		_, err := r.store.PurgeAnswers(ctx, hold, time.Hour, 1)
		switch {
		case errors.Is(err, dlock.ErrFenced):
			r.refused.Add(1)
			return
		case err != nil && ctx.Err() == nil && !errors.Is(err, stock.ErrBusy) && !errors.Is(err, stock.ErrUnavailable) && !errors.Is(err, order.ErrOutcomeUnknown):
			t.Error(err)
			return
		case err == nil && over:
			r.late.Add(1)
		}
	}
}

// leader returns who was elected last, and how many terms there were.
func (r *reign) leader() (name string, taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) == 0 {
		return "", 0
	}
	return r.names[len(r.names)-1], len(r.names)
}

// candidateOf is a candidate whose election goes through a proxy. Its work does not.
func candidateOf(t *testing.T, name, database string) (*leadership, *testbed.Proxy) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host = proxy.Addr()
	return candidate(t, openTestStore(t, u.String()), name), proxy
}

// The leader is cut off from its row until another instance is elected, again and again. Its term ends before the next
// one begins. If it continues to work, the database accepts that only until then. So the record has one term after the
// other.
func TestHistoryOfPartitionedLeaders(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	r := &reign{store: openTestStore(t, database)}
	db := testbedtest.OpenSQL(t, database)
	testbedtest.RecordTerms(t, db)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	proxies := make(map[string]*testbed.Proxy)
	var candidates sync.WaitGroup
	on, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer func() {
		cancel()
		stop()
		candidates.Wait()
		r.overdue.Wait()
	}()
	for _, name := range []string{"a", "b", "c"} {
		l, proxy := candidateOf(t, name, database)
		proxies[name] = proxy
		candidates.Go(func() { l.run(ctx) })
		candidates.Go(func() {
			for ctx.Err() == nil {
				if leads, _ := l.during(ctx, func(ctx context.Context, term *cluster.Term) error { return r.lead(ctx, on, t, l, term) }); !leads {
					time.Sleep(time.Millisecond) // between questions
				}
			}
		})
	}
	cuts := testbedtest.Size(3, 20)
	for cut := range cuts {
		testbedtest.Eventually(t, "somebody leads", func() bool { _, taken := r.leader(); return taken > cut })
		name, taken := r.leader()
		began := time.Now()
		proxies[name].BlackHole()
		testbedtest.Eventually(t, "somebody else leads", func() bool { now, again := r.leader(); return again > taken && now != name })
		t.Logf("%s was cut off, and another one leads after %v", name, time.Since(began).Round(time.Millisecond))
		if err := proxies[name].Pass(); err != nil {
			t.Fatal(err)
		}
	}
	cancel() // the last one resigns
	candidates.Wait()
	_, taken := r.leader()
	testbedtest.Eventually(t, "all leaders are refused", func() bool { return r.refused.Load() == int64(taken) })
	terms, works := testbedtest.RecordedTerms(t, db)
	t.Logf("%d terms, %d times at work, %d of them after a term was over and before the next; %d leaders were refused", terms, works, r.late.Load(), r.refused.Load())
	if terms < cuts+1 {
		t.Errorf("want %d terms", cuts+1)
	}
}
