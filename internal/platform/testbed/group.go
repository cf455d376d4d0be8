package testbed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Group is MySQL on three servers with Group Replication in single-primary mode: they elect the one that accepts writes.
type Group struct {
	servers[*MariaDB]
	Network *Network // of the members
}

// StartGroup runs three servers on machines of a network, for which it needs root, and returns when all are members of the group. It needs a folder with MySQL,
// as MariaDBConfig has one. The statements are executed by each server before it is a member.
//
// A server that is started again is read-only until [Group.Join]: it is a server of its own, and its group would refuse what it has
// written alone (error 3092).
func StartGroup(ctx context.Context, programs string, statements ...string) (*Group, error) {
	const members = 3
	network, err := StartNetwork(ctx, members)
	if err != nil {
		return nil, err
	}
	addresses := make([]string, members)
	for i, m := range network.machines {
		addresses[i] = m.addr + ":33061"
	}
	g := &Group{Network: network}
	for i := range addresses {
		const of = "loose_group_replication_"
		m, err := StartMariaDB(ctx, MariaDBConfig{Programs: programs, on: network.machines[i], Vars: map[string]string{
			"server_id": fmt.Sprint(i + 1), "gtid_mode": "ON", "enforce_gtid_consistency": "ON", "report_host": network.machines[i].addr,
			"plugin_load_add": "group_replication.so", of + "group_name": "5d1b9a51-52a4-4ba0-b1c4-0f4ed3ca7a4a", of + "start_on_boot": "OFF",
			of + "local_address": addresses[i], of + "group_seeds": strings.Join(addresses, ","), of + "recovery_get_public_key": "ON",
			of + "consistency": "BEFORE_ON_PRIMARY_FAILOVER", of + "unreachable_majority_timeout": "3", of + "ip_allowlist": networkRange,
		}})
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.nodes = append(g.nodes, m)
		m.args = append(m.args, "--super-read-only=ON")
		if err := m.Exec(ctx, slices.Concat([]string{"CREATE USER root@'%'", "GRANT ALL ON *.* TO root@'%'"}, statements, []string{
			"RESET BINARY LOGS AND GTIDS", "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery'",
			fmt.Sprint("SET GLOBAL group_replication_bootstrap_group = ", i == 0), joinGroup, "SET GLOBAL group_replication_bootstrap_group = OFF",
		})...); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// Close ends the servers and their network.
func (g *Group) Close() error { return errors.Join(g.servers.Close(), g.Network.Close()) }

const joinGroup = "START GROUP_REPLICATION"

// Join makes a server that was started again a member, as soon as the group has given up the member that it was.
func (g *Group) Join(ctx context.Context, m *MariaDB) error {
	return until(ctx, "member of the group", func(ctx context.Context) error {
		if err := m.Exec(ctx, joinGroup); err != nil {
			return fmt.Errorf("%w%s", err, lastOutput(m.folder)) // which has the reason
		}
		return nil
	})
}

// Whole returns when all servers are members, as each of them sees it.
func (g *Group) Whole(ctx context.Context) error {
	return until(ctx, "all members online", func(ctx context.Context) error {
		for _, m := range g.nodes {
			online, err := m.ask(ctx, "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'")
			if err == nil {
				err = expect("members", online, fmt.Sprint(len(g.nodes)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Primary is the server that accepts writes.
func (g *Group) Primary(ctx context.Context) (*MariaDB, error) {
	var refused error
	for _, m := range g.nodes {
		soon, cancel := context.WithTimeout(ctx, attemptTimeout) // a server may be paused
		addr, err := m.ask(soon, "SELECT CONCAT(MEMBER_HOST, ':', MEMBER_PORT) FROM performance_schema.replication_group_members WHERE MEMBER_ROLE = 'PRIMARY'")
		cancel()
		at := slices.IndexFunc(g.nodes, func(n *MariaDB) bool { return n.addr == addr })
		if err == nil && at >= 0 {
			return g.nodes[at], nil
		}
		refused = errors.Join(refused, err)
	}
	return nil, fmt.Errorf("no server knows a primary: %w", refused)
}

// Switch makes another server the primary.
func (g *Group) Switch(ctx context.Context) error {
	primary, err := g.Primary(ctx)
	if err != nil {
		return err
	}
	next := g.nodes[(slices.Index(g.nodes, primary)+1)%len(g.nodes)]
	id, err := next.ask(ctx, "SELECT @@server_uuid")
	if err == nil {
		_, err = next.ask(ctx, "SELECT group_replication_set_as_primary('"+id+"')")
	}
	return err
}

// ask returns the only value of a query.
func (m *MariaDB) ask(ctx context.Context, query string) (value string, err error) {
	err = m.with(func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&value) })
	return value, err
}
