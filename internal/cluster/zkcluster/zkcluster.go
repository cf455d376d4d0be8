package zkcluster

import (
	"cmp"
	"fmt"
	"strings"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/zookeeper"
)

// Config is the configuration of a [Cluster]. How long an instance that has died is
// listed is the timeout of the session.
type Config struct {
	// Prefix is the node below which everything is, seen from the root of the session.
	// Empty means "/cluster".
	Prefix string

	// OnError receives nodes that are no entries, once each, and of what is tried
	// again in the background. It must not block. Default: none.
	OnError func(error)
}

// Cluster is what an instance has of the others in ZooKeeper. It is safe for
// concurrent use, and has no goroutines of its own.
type Cluster struct {
	s      *zookeeper.Session
	cfg    Config
	strays cluster.Strays
}

var (
	_ cluster.Membership  = (*Cluster)(nil)
	_ cluster.ConfigStore = (*Cluster)(nil)
)

// New returns a Cluster on s, which it does not close. The end of s ends what is
// listed of this instance.
func New(s *zookeeper.Session, cfg Config) (*Cluster, error) {
	cfg.Prefix = cmp.Or(cfg.Prefix, "/cluster")
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if !strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/") {
		return nil, fmt.Errorf("zkcluster: prefix %q does not begin, or ends, with a slash", cfg.Prefix)
	}
	return &Cluster{s: s, cfg: cfg}, nil
}
