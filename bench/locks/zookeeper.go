package main

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/zookeeper"
)

// zookeeperStore is zklock alongside the Lock of the client library that it is built on.
// Both have a session per process.
func zookeeperStore() store {
	return store{
		name: "ZooKeeper",
		locks: []subject{
			{name: oursThere, ours: true, open: func(ctx context.Context, on *servers) (*client, error) {
				server, err := on.zookeeper()
				if err != nil {
					return nil, err
				}
				s, err := zookeeper.Connect(ctx, zookeeper.Config{Servers: []string{server.Addr()}, Timeout: ttl})
				if err != nil {
					return nil, err
				}
				l, err := zklock.New(s, zklock.Config{})
				if err != nil {
					return nil, errors.Join(err, s.Close(ctx))
				}
				return &client{acquire: leases(l), close: s.Close}, nil
			}},
			{name: "zk.Lock", open: onConn(func(conn *zk.Conn) (*client, error) {
				return &client{acquire: func(_ context.Context, key string) (func(context.Context) error, error) {
					l := zk.NewLock(conn, "/peer/"+key, zk.WorldACL(zk.PermAll))
					if err := l.Lock(); err != nil {
						return nil, err
					}
					return func(context.Context) error { return l.Unlock() }, nil
				}}, nil
			})},
		},
		floor: floorOn(func(open func(node) (*client, error)) func(context.Context, *servers) (*client, error) {
			return onConn(func(conn *zk.Conn) (*client, error) { return open(zookeeperNode(conn)) })
		}),
	}
}

func zookeeperNode(conn *zk.Conn) node {
	return node{
		create: func(_ context.Context, name string) error {
			_, err := conn.Create("/floor-"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			return err
		},
		remove: func(_ context.Context, name string) error { return conn.Delete("/floor-"+name, -1) },
		gone: func(_ context.Context, name string) error {
			_, _, events, err := conn.GetW("/floor-" + name)
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			event := <-events
			return event.Err
		},
	}
}

// onConn is a client with a connection of the library, which knows no contexts.
func onConn(open func(*zk.Conn) (*client, error)) func(context.Context, *servers) (*client, error) {
	return func(ctx context.Context, on *servers) (*client, error) {
		server, err := on.zookeeper()
		if err != nil {
			return nil, err
		}
		conn, events, err := zk.Connect([]string{server.Addr()}, ttl, zk.WithLogInfo(false))
		if err != nil {
			return nil, err
		}
		for connected := false; !connected; {
			select {
			case e := <-events:
				connected = e.State == zk.StateHasSession
			case <-ctx.Done():
				conn.Close()
				return nil, ctx.Err()
			}
		}
		c, err := open(conn)
		return c.on(err, func() error { conn.Close(); return nil })
	}
}
