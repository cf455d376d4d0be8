package main

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"example.com/shop/internal/dlock/etcdlock"
)

// etcdStore is etcdlock alongside the Mutex of etcd's own library, which has a lease per
// session where ours has one per holder. Sessions are made before, and last.
func etcdStore() store {
	return store{
		name: "etcd",
		locks: []subject{
			{name: oursThere, ours: true, open: onEtcd(func(cli *clientv3.Client) (*client, error) {
				l, err := etcdlock.New(cli, etcdlock.Config{TTL: ttl})
				if err != nil {
					return nil, err
				}
				return &client{acquire: leases(l), close: l.Close}, nil
			})},
			{name: "concurrency.Mutex, a session per caller", open: onEtcd(sessionPerCaller)},
			{name: "concurrency.Mutex, a session per process", open: onEtcd(sessionPerProcess)},
		},
		floor: floorOn(func(open func(node) (*client, error)) func(context.Context, *servers) (*client, error) {
			return onEtcd(func(cli *clientv3.Client) (*client, error) { return open(etcdNode(cli)) })
		}),
	}
}

// etcdNode is a key, which is watched from now on: etcd serves a watch that begins in
// the past only ten times a second.
func etcdNode(cli *clientv3.Client) node {
	return node{
		create: func(ctx context.Context, name string) error {
			_, err := cli.Put(ctx, "floor/"+name, "")
			return err
		},
		remove: func(ctx context.Context, name string) error {
			_, err := cli.Delete(ctx, "floor/"+name)
			return err
		},
		gone: func(ctx context.Context, name string) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			events := cli.Watch(ctx, "floor/"+name, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
			<-events // it has begun
			if answer, err := cli.Get(ctx, "floor/"+name); err != nil || len(answer.Kvs) == 0 {
				return err
			}
			answer, open := <-events
			if !open {
				return errors.New("the watch has ended")
			}
			return answer.Err()
		},
	}
}

// onEtcd is a client with a connection of its own, the same for every subject.
func onEtcd(open func(*clientv3.Client) (*client, error)) func(context.Context, *servers) (*client, error) {
	return func(_ context.Context, on *servers) (*client, error) {
		server, err := on.etcd()
		if err != nil {
			return nil, err
		}
		cli, err := etcdlock.NewClient(server.Addr())
		if err != nil {
			return nil, err
		}
		c, err := open(cli)
		return c.on(err, cli.Close)
	}
}

// sessionPerCaller gives every caller a session, and later ones those of earlier ones.
func sessionPerCaller(cli *clientv3.Client) (*client, error) {
	const most = 64
	idle := make(chan *concurrency.Session, most)
	take := func() (*concurrency.Session, error) {
		select {
		case s := <-idle:
			return s, nil
		default:
			return concurrency.NewSession(cli, concurrency.WithTTL(int(ttl.Seconds())))
		}
	}
	return &client{
		acquire: func(ctx context.Context, key string) (func(context.Context) error, error) {
			s, err := take()
			if err != nil {
				return nil, err
			}
			m := concurrency.NewMutex(s, "peer/"+key)
			if err := m.Lock(ctx); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			return func(ctx context.Context) error {
				defer func() { idle <- s }()
				return m.Unlock(ctx)
			}, nil
		},
		close: func(context.Context) error {
			close(idle)
			var errs []error
			for s := range idle {
				errs = append(errs, s.Close())
			}
			return errors.Join(errs...)
		},
	}, nil
}

// sessionPerProcess is one session for all callers. Two Mutexes of a session both lock,
// so callers of a key in one process need a local lock before it.
func sessionPerProcess(cli *clientv3.Client) (*client, error) {
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(int(ttl.Seconds())))
	if err != nil {
		return nil, err
	}
	var local sync.Map // by key, of *sync.Mutex
	return &client{
		acquire: func(ctx context.Context, key string) (func(context.Context) error, error) {
			value, _ := local.LoadOrStore(key, new(sync.Mutex))
			mine, ok := value.(*sync.Mutex)
			if !ok {
				return nil, errors.New("not a mutex")
			}
			mine.Lock()
			m := concurrency.NewMutex(s, "peer/"+key)
			if err := m.Lock(ctx); err != nil {
				mine.Unlock()
				return nil, err
			}
			return func(ctx context.Context) error {
				defer mine.Unlock()
				return m.Unlock(ctx)
			}, nil
		},
		close: func(context.Context) error { return s.Close() },
	}, nil
}
