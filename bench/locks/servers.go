package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed"
)

// servers are what everything runs on. Those alongside Redis are started when they are
// first needed, as -only may need none of them.
type servers struct {
	redis     *measure.Server
	five      func() (nodes, error)
	etcd      func() (*testbed.Etcd, error)
	zookeeper func() (*testbed.ZooKeeper, error)
	maria     func() (*database, error)
	sqlite    func() (*database, error)

	versions []string
	closers  []func() error
}

// start needs the address of a Redis server, or starts one. The servers end with close.
func start(ctx context.Context, address string) (*servers, error) {
	redis, err := measure.OpenServer(ctx, address)
	if err != nil {
		return nil, err
	}
	s := &servers{redis: redis, closers: []func() error{func() error { redis.Close(); return nil }}}
	info, err := redis.Info(ctx, "server")
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.versions = append(s.versions, "Redis "+info["redis_version"]+", without persistence")
	s.five = once(s, func() (nodes, string, error) {
		n, err := startNodes(ctx)
		return n, "", err
	})
	s.etcd = once(s, func() (*testbed.Etcd, string, error) { return startEtcd(ctx) })
	s.zookeeper = once(s, func() (*testbed.ZooKeeper, string, error) { return startZooKeeper(ctx) })
	s.maria = once(s, func() (*database, string, error) { return startMariaDB(ctx) })
	s.sqlite = once(s, func() (*database, string, error) { return createSQLite(ctx) })
	return s, nil
}

// once makes begin run when it is first called for, and what it has started end with s.
func once[S io.Closer](s *servers, begin func() (server S, version string, err error)) func() (S, error) {
	return sync.OnceValues(func() (S, error) {
		server, version, err := begin()
		if err != nil {
			return server, err
		}
		s.closers = append(s.closers, server.Close)
		if version != "" {
			s.versions = append(s.versions, version)
		}
		return server, nil
	})
}

// close ends all servers, the last one first.
func (s *servers) close() error {
	var errs []error
	for _, end := range slices.Backward(s.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

func startEtcd(ctx context.Context) (*testbed.Etcd, string, error) {
	server, err := testbed.StartEtcd(ctx, testbed.EtcdConfig{})
	if err != nil {
		return nil, "", err
	}
	cli, err := etcdlock.NewClient(server.Addr())
	if err != nil {
		return nil, "", errors.Join(err, server.Close())
	}
	defer cli.Close()
	status, err := clientv3.NewMaintenance(cli).Status(ctx, server.Addr())
	if err != nil {
		return nil, "", errors.Join(err, server.Close())
	}
	return server, "etcd " + status.Version, nil
}

func startZooKeeper(ctx context.Context) (*testbed.ZooKeeper, string, error) {
	server, err := testbed.StartZooKeeper(ctx, testbed.ZooKeeperConfig{})
	if err != nil {
		return nil, "", err
	}
	answer, err := server.Ask(ctx, "srvr")
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("zookeeper: %w", err), server.Close())
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(answer, "Zookeeper version: "), "-")
	return server, "ZooKeeper " + version, nil
}
