package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest/memcluster"
	"example.com/shop/internal/dlock/memlock"
)

// candidate is one that can be elected.
func candidate(t *testing.T) *leadership {
	t.Helper()
	l := newLeadership("test", slog.New(slog.DiscardHandler))
	var err error
	l.election, err = cluster.NewElection(cluster.ElectionConfig{
		Locker: memlock.New(memlock.Config{}), Registry: new(memcluster.Cluster), Name: "test", Pause: time.Millisecond, OnError: l.trouble,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// elect makes l lead until the test ends.
func elect(t *testing.T, l *leadership) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for leads := false; !leads; {
		leads, _ = l.during(t.Context(), func(context.Context, *cluster.Term) error { return nil })
		if t.Context().Err() != nil {
			t.Fatal("not elected")
		}
	}
}
