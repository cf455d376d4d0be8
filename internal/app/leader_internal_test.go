package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/sqlstore"
)

// candidate is one that can be elected.
func candidate(t *testing.T, store *sqlstore.Store, name string) *leadership {
	t.Helper()
	rows, err := store.Cluster(sqlcluster.Config{TTL: electionTTL})
	if err != nil {
		t.Fatal(err)
	}
	l := &leadership{log: slog.New(slog.DiscardHandler)}
	if l.election, err = rows.Election("leader", name); err != nil {
		t.Fatal(err)
	}
	return l
}

// elect makes l lead until the test ends.
func elect(t *testing.T, l *leadership) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() { l.run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	for leads := false; !leads; time.Sleep(time.Millisecond) { // between questions
		leads, _ = l.during(t.Context(), func(context.Context, *cluster.Term) error { return nil })
		if t.Context().Err() != nil {
			t.Fatal("not elected")
		}
	}
}

// leads makes l lead without a store.
func leads(t *testing.T, l *leadership) {
	t.Helper()
	leader := cluster.Leader{Name: "test", Fence: dlock.Fence{Token: 1, Owner: "x"}}
	l.begin(cluster.NewTerm(t.Context(), leader, func(context.Context) error { return nil }))
}
