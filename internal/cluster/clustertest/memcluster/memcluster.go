package memcluster

import (
	"sync"

	"example.com/shop/internal/cluster"
)

// Cluster is a membership and a store of configuration in memory. The zero
// value is empty and ready for use. It must not be copied.
type Cluster struct {
	mu        sync.Mutex
	members   map[string]*place
	entries   map[string]cluster.Entry
	listeners map[*func()]struct{}
}

var (
	_ cluster.Membership  = (*Cluster)(nil)
	_ cluster.ConfigStore = (*Cluster)(nil)
)
