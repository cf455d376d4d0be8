package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// ensembleSize is the smallest ensemble that survives one of its members.
const ensembleSize = 3

// ZooKeeperEnsemble is three ZooKeeper servers that agree by majority.
type ZooKeeperEnsemble struct{ servers[*ZooKeeper] }

// StartZooKeeperEnsemble runs three servers on free loopback ports and returns when each of them opens sessions.
func StartZooKeeperEnsemble(ctx context.Context, cfg ZooKeeperConfig) (*ZooKeeperEnsemble, error) {
	var err error
	for range startAttempts {
		e := &ZooKeeperEnsemble{}
		if err = e.start(ctx, cfg); err == nil {
			return e, nil
		}
		err = errors.Join(err, e.Close())
		if !errors.Is(err, errExited) { // otherwise one of many ports was taken meanwhile
			return nil, err
		}
	}
	return nil, err
}

func (e *ZooKeeperEnsemble) start(ctx context.Context, cfg ZooKeeperConfig) error {
	// A follower that is not notified of its leader for five ticks gives it up.
	members := []string{"initLimit=100", "syncLimit=5"}
	var ports []int
	for i := range ensembleSize {
		member, err := freePorts(ctx, 3) // for clients, for the quorum, for elections
		if err != nil {
			return err
		}
		ports = append(ports, member[0])
		members = append(members, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, member[1], member[2]))
	}
	for i, port := range ports {
		node, err := newZooKeeper(ctx)
		if err != nil {
			return err
		}
		e.nodes = append(e.nodes, node)
		if err := node.configure(cfg, port, members...); err != nil {
			return err
		}
		id := filepath.Join(node.data, "myid")
		if err := os.WriteFile(id, fmt.Append(nil, i+1), 0o600); err != nil {
			return err
		}
	}
	starts, ctx := errgroup.WithContext(ctx)
	for _, node := range e.nodes { // all at once: one alone has no majority
		starts.Go(func() error { return node.start(ctx) })
	}
	return starts.Wait()
}

// Leader returns the server that leads. It waits until one does, or ctx ends.
func (e *ZooKeeperEnsemble) Leader(ctx context.Context) (*ZooKeeper, error) {
	var leader *ZooKeeper
	err := until(ctx, "zookeeper", func(ctx context.Context) error {
		for _, node := range e.nodes {
			answer, err := node.Ask(ctx, "srvr")
			if err == nil && strings.Contains(answer, "Mode: leader") {
				leader = node
				return nil
			}
		}
		return errors.New("no server leads")
	})
	return leader, err
}
