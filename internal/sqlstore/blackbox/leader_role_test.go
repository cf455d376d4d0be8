package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// elected returns the next term of an instance on s, and what begins the transactions of its work.
func elected(t *testing.T, s *sqlstore.Store, name string) (term *cluster.Term, hold func(context.Context, timeout.Tx) error) {
	t.Helper()
	rows, err := s.Cluster(sqlcluster.Config{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	e, err := rows.Election("leader", name)
	if err != nil {
		t.Fatal(err)
	}
	if term, err = e.Campaign(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Resign(t.Context()) }) // it may be over
	return term, func(ctx context.Context, tx timeout.Tx) error { return e.Hold(ctx, tx, term.Leader()) }
}

// The work of a leader is refused, and changes nothing, from the moment at which a later leader is elected.
func TestSupersededLeaderIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) { superseded(t, url, url) })
}

// The same with the leaders at different nodes, where no row lock of the first keeps the second one out.
func TestSupersededLeaderIsRefusedByAnotherGaleraNode(t *testing.T) {
	t.Parallel()
	nodes := testbedtest.StartGalera(t).Nodes()
	superseded(t, nodes[0].URL(), nodes[1].URL())
}

// superseded elects a leader at url, and the next one at another URL of the database.
func superseded(t *testing.T, url, another string) {
	t.Helper()
	ctx, s, other := t.Context(), open(t, url, "one"), open(t, another, "two")
	sold := &stock.ShortageError{}
	work := func(hold func(context.Context, timeout.Tx) error) (int64, error) {
		once := keyed("POST /orders", fmt.Sprint(time.Now().UnixNano()), "")
		if err := s.Refuse(ctx, once, refusal(sold)); err != nil {
			t.Fatal(err)
		}
		n, err := s.PurgeAnswers(ctx, hold, -time.Hour, 100)
		if _, found, asking := s.Answer(ctx, once); asking != nil || found == (err == nil) {
			t.Errorf("the answer is there: %v, %v, after %v", found, asking, err)
		}
		return n, err
	}
	first, hold := elected(t, s, "a")
	if n, err := work(hold); n != 1 || err != nil {
		t.Errorf("in the first term: %d, %v", n, err)
	}
	if _, err := rawDB(t, another).ExecContext(ctx, "UPDATE cluster_leaders SET expires_at = 1"); err != nil {
		t.Fatal(err)
	}
	second, later := elected(t, other, "b")
	if n, err := work(hold); n != 0 || !errors.Is(err, dlock.ErrFenced) {
		t.Errorf("of a former leader: %d, %v", n, err)
	}
	if n, err := work(later); n != 2 || err != nil || second.Fence().Token <= first.Fence().Token {
		t.Errorf("in the second term, %d after %d: %d, %v", second.Fence().Token, first.Fence().Token, n, err)
	}
}
