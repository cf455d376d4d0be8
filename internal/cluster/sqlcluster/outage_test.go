package sqlcluster_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The database is unavailable to all instances for longer than rows last. No list without live members is reported as
// right afterwards.
func TestOutageIsNotADeath(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		near := store{engine: sqldb.MariaDB(), address: testbedtest.Database(t)}
		near.create(t)
		far, cut := near.behind(t)
		observer, hidden := near.behind(t)
		group, names := rand.Text(), []string{"a", "b", "c"}
		for _, name := range names {
			clustertest.Join(t, far.instance(t, group, func(error) {}), cluster.Member{Name: name, Address: name})
		}
		seen := clustertest.Follow(t, observer.instance(t, group, func(error) {}).Members)
		seen.Until(t, "all", clustertest.Lists(names...))
		before := len(seen.Fresh())
		for range 3 {
			cut.BlackHole()
			hidden.BlackHole()
			seen.Until(t, "that it is stale", func(v cluster.View, err error) bool {
				return errors.Is(err, cluster.ErrStale) && len(v.Members) == len(names)
			})
			time.Sleep(ttl) // the outage
			check(t, hidden.Pass())
			time.Sleep(ttl / 4) // in which the observer reads
			check(t, cut.Pass())
			seen.Until(t, "all", clustertest.Lists(names...))
		}
		for _, v := range seen.Fresh()[before:] {
			if !slices.Equal(clustertest.Names(v), names) {
				t.Errorf("listed as right: %v", clustertest.Names(v))
			}
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	db := store{engine: sqldb.SQLite(), address: t.TempDir() + "/cluster.db"}.open(t)
	for _, cfg := range []sqlcluster.Config{{Group: string(make([]byte, 129))}, {TTL: time.Millisecond}, {Poll: time.Microsecond}} {
		if _, err := sqlcluster.New(db, sqldb.SQLite(), cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	if _, err := sqlcluster.New(db, nil, sqlcluster.Config{}); err == nil {
		t.Error("an unknown dialect is accepted")
	}
	if _, err := sqlcluster.New(nil, sqldb.SQLite(), sqlcluster.Config{}); err == nil {
		t.Error("no database is accepted")
	}
}
