package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/go-zookeeper/zk"
)

// path is p below the root.
func (s *Session) path(p string) string { return s.cfg.Root + p }

// Escape makes a text the name of a node: a name has no slash and no control characters, and is not a dot or two.
func Escape(text string) string {
	name := url.PathEscape(text)
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return name
}

// acl is that of all nodes: of the user of the session, or without one of everybody who reaches the servers.
func (s *Session) acl() []zk.ACL {
	if s.cfg.Auth != "" {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// Get returns the data of a node. It may be that of a moment ago, unless a Sync
// has come before.
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	return read(ctx, s, "get ", path, (*zk.Conn).Get)
}

// read sends a request that only reads.
func read[T any](ctx context.Context, s *Session, what, path string, f func(conn *zk.Conn, full string) (T, *zk.Stat, error)) (T, *zk.Stat, error) {
	r, err := call(ctx, s, what+path, func(conn *zk.Conn) (r reading[T], err error) {
		r.value, r.stat, err = f(conn, s.path(path))
		return r, err
	}, nil)
	return r.value, r.stat, err
}

// Children returns the names of the children of a node, in no order, and the stat
// of the node itself. They may be those of a moment ago, unless a Sync has come before.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	return read(ctx, s, "children of ", path, (*zk.Conn).Children)
}

// Sync returns when the server has caught up with its leader, so later reads are no older than the call. Exception:
// another leader was elected meanwhile, because a leader answers Sync without asking the majority (ZOOKEEPER-1675).
func (s *Session) Sync(ctx context.Context) error {
	_, err := call(ctx, s, "sync", func(conn *zk.Conn) (string, error) {
		return conn.Sync(cmp.Or(s.cfg.Root, "/"))
	}, nil)
	return err
}

// Confirm confirms the session by a commit that changes nothing, but that it makes the root if that is missing. Later
// reads are no older than the call.
func (s *Session) Confirm(ctx context.Context) error {
	for {
		_, err := confirming(ctx, s, "confirm", func(conn *zk.Conn) ([]zk.MultiResponse, error) {
			return conn.Multi(&zk.CheckVersionRequest{Path: cmp.Or(s.cfg.Root, "/"), Version: -1})
		}, nil)
		if !errors.Is(err, zk.ErrNoNode) || s.cfg.Root == "" {
			return err
		}
		if err := s.ensure(ctx, s.cfg.Root); err != nil {
			return err
		}
	}
}

// Set replaces the data of a node. A version of -1 means any.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	return confirming(ctx, s, "set "+path, func(conn *zk.Conn) (*zk.Stat, error) {
		return conn.Set(s.path(path), data, version)
	}, nil)
}

// Create makes a node that stays until it is deleted, and the containers above it. It
// returns zk.ErrNodeExists if there is a node.
func (s *Session) Create(ctx context.Context, path string, data []byte) error {
	for {
		_, err := confirming(ctx, s, "create "+path, func(conn *zk.Conn) (string, error) {
			return conn.Create(s.path(path), append([]byte{}, data...), 0, s.acl())
		}, nil)
		parent := path[:strings.LastIndexByte(path, '/')]
		if !errors.Is(err, zk.ErrNoNode) || parent == "" {
			return err
		}
		if err := s.EnsureContainer(ctx, parent); err != nil {
			return err
		}
	}
}

// Delete deletes a node that has no children. A version of -1 means any.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	_, err := confirming(ctx, s, "delete "+path, func(conn *zk.Conn) (struct{}, error) {
		return struct{}{}, conn.Delete(s.path(path), version)
	}, nil)
	return err
}

// Retire replaces the data of a node that has no children and deletes it, in one step, so that a watch of the node reports
// the change. It returns zk.ErrNoNode if the node is missing.
func (s *Session) Retire(ctx context.Context, path string, data []byte) error {
	full := s.path(path)
	_, err := confirming(ctx, s, "retire "+path, func(conn *zk.Conn) ([]zk.MultiResponse, error) {
		return conn.Multi(&zk.SetDataRequest{Path: full, Data: data, Version: -1}, &zk.DeleteRequest{Path: full, Version: -1})
	}, nil)
	return err
}

// EnsureContainer makes a node, and those above it, unless they exist. All of them
// are containers: the servers delete them some time after their last child has gone.
func (s *Session) EnsureContainer(ctx context.Context, path string) error {
	return s.ensure(ctx, s.path(path))
}

// ensure makes the parents of full only if they turn out to be missing.
func (s *Session) ensure(ctx context.Context, full string) error {
	for {
		_, err := confirming(ctx, s, "create "+full, func(conn *zk.Conn) (string, error) {
			return conn.CreateContainer(full, []byte{}, zk.FlagContainer, s.acl())
		}, nil)
		switch parent := full[:strings.LastIndexByte(full, '/')]; {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case !errors.Is(err, zk.ErrNoNode) || parent == "":
			return err
		default:
			if err := s.ensure(ctx, parent); err != nil {
				return err
			}
		}
	}
}
