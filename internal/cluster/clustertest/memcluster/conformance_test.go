package memcluster_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/clustertest/memcluster"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// stores are those of the groups.
type stores struct {
	mu  sync.Mutex
	all map[string]*memcluster.Cluster
}

func (s *stores) of(group string) *memcluster.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[group] == nil {
		s.all[group] = &memcluster.Cluster{}
	}
	return s.all[group]
}

func TestCluster(t *testing.T) {
	t.Parallel()
	all := stores{all: map[string]*memcluster.Cluster{}}
	h := clustertest.Harness{
		New: func(_ testing.TB, group string, _ func(error)) clustertest.Instance {
			c := all.of(group)
			return clustertest.Instance{Membership: c, ConfigStore: c}
		},
		Seen:   500 * time.Millisecond,
		Expire: func(_ testing.TB, group, name string) { all.of(group).Expire(name) },
		Poke: func(t testing.TB, group, name, text string) {
			t.Helper()
			_, err := all.of(group).Write(t.Context(), name, text, -1)
			conflict, _ := errors.AsType[*cluster.ConflictError](err)
			if _, err := all.of(group).Write(t.Context(), name, text, conflict.Current.Version); err != nil {
				t.Error(err)
			}
		},
	}
	clustertest.Run(t, h)
	clustertest.RunConfig(t, h)
}
