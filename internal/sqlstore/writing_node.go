package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// NodeClaimTTL is how long an instance is taken to write to a node after [Store.ClaimNode].
const NodeClaimTTL = 15 * time.Second

// OtherNodeError says that an instance writes to another node of the Galera cluster.
type OtherNodeError struct{ Node, Instance, Other string }

// Error implements error.
func (e *OtherNodeError) Error() string {
	return fmt.Sprintf("the database is node %s of a Galera cluster, and instance %s writes to node %s", e.Node, e.Instance, e.Other)
}

// ClaimNode records for [NodeClaimTTL] that this instance writes to its node of a Galera cluster. It fails with an
// [*OtherNodeError] if another instance has recorded another node. Unless shared, it then records nothing. Of two
// instances that claim different nodes at once, one or both fail: a node commits in the order of the cluster, so the
// later claim finds the earlier one. On other servers ClaimNode does nothing.
func (s *Store) ClaimNode(ctx context.Context, shared bool) error {
	if s.engine.LocksReachAllWriters {
		return nil
	}
	var other *OtherNodeError
	err := s.writing(ctx, func() error {
		return s.db.WithContext(ctx).Connection(func(conn *gorm.DB) error { // of one node, wherever others lead
			node, err := nodeOf(ctx, conn)
			if err != nil {
				return err
			}
			other, err = s.otherNode(conn, node)
			if err != nil || other != nil && !shared {
				return err
			}
			claim := "INSERT INTO writing_nodes (node, instance, seen_at) VALUES (?, ?, " + s.engine.Now + ") ON DUPLICATE KEY UPDATE seen_at = " + s.engine.Now
			if err := conn.Exec(claim, node, s.instance).Error; err != nil {
				return err
			}
			other, err = s.otherNode(conn, node)
			return err
		})
	})
	if err == nil && other != nil {
		err = other
	}
	return err
}

// ReleaseNode removes what [Store.ClaimNode] has recorded of this instance.
func (s *Store) ReleaseNode(ctx context.Context) error {
	if s.engine.LocksReachAllWriters {
		return nil
	}
	return s.writing(ctx, func() error {
		return s.db.WithContext(ctx).Exec("DELETE FROM writing_nodes WHERE instance = ? OR seen_at < "+s.engine.Now+" - ?",
			s.instance, NodeClaimTTL.Microseconds()).Error
	})
}

// nodeOf names the node of a connection. Its address need not be unique, as many a machine is called localhost; the
// second part is new after each start of the node.
func nodeOf(ctx context.Context, conn *gorm.DB) (node string, err error) {
	var name, id string
	err = conn.Statement.ConnPool.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_gcomm_uuid'").Scan(&name, &id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // a server without the provider
		return "", err
	}
	err = conn.Raw("SELECT CONCAT(@@hostname, ':', @@port, ' (', ?, ')')", id).Scan(&node).Error
	return node, err
}

// otherNode returns an instance that writes to another node, or nil. A claim far in the future is older than a step of the
// clock.
func (s *Store) otherNode(conn *gorm.DB, node string) (*OtherNodeError, error) {
	var rows []struct{ Node, Instance string }
	err := conn.Raw("SELECT node, instance FROM writing_nodes WHERE node <> ? AND seen_at - "+s.engine.Now+" BETWEEN ? AND ? ORDER BY seen_at DESC LIMIT 1",
		node, -NodeClaimTTL.Microseconds(), NodeClaimTTL.Microseconds()).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &OtherNodeError{Node: node, Instance: rows[0].Instance, Other: rows[0].Node}, nil
}
