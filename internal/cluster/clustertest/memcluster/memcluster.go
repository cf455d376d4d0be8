package memcluster

import (
	"sync"

	"example.com/shop/internal/cluster"
)

// Cluster is a membership, a registry and a store of configuration in memory. The zero
// value is empty and ready for use. It must not be copied.
type Cluster struct {
	mu            sync.Mutex
	members       map[string]*place
	announcements map[string]cluster.Leader
	entries       map[string]cluster.Entry
	listeners     map[*func()]struct{}
}

var (
	_ cluster.Membership  = (*Cluster)(nil)
	_ cluster.Registry    = (*Cluster)(nil)
	_ cluster.ConfigStore = (*Cluster)(nil)
)
