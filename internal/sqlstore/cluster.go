package sqlstore

import "example.com/shop/internal/cluster/sqlcluster"

// Cluster returns the members and the elections that are stored in the same database. It uses the
// connections of Ping, so an instance stays a member however many orders wait for a connection.
func (s *Store) Cluster(c sqlcluster.Config) (*sqlcluster.Cluster, error) {
	return sqlcluster.New(s.aside, s.engine.Engine, c)
}
