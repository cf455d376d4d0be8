package zookeeper

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Event says why a watch ends.
type Event int

// Reasons for the end of a watch.
const (
	Changed Event = iota // the data, or the children, of the node
	Deleted              // the node
	Ended                // the session, which knows no more
)

// watchKey is a node, or its children.
type watchKey struct {
	path     string
	children bool
}

// watched is a node that is watched, or for whose watch the server is being asked.
type watched struct {
	armed bool // the server will notify, once
	calls map[*watch]struct{}
}

type watch struct{ f func(Event) }

// watches are the watches of a session. A node is watched once, no matter by how many, and until something happens to
// it: ZooKeeper cannot forget a watch by this client. So what those leave behind who stop waiting is at most one watch
// per node that exists.
type watches struct {
	mu    sync.Mutex
	paths map[watchKey]*watched
	count int // of those armed
}

func (w *watches) armed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count > 0
}

// add registers f, and reports whether the server will notify without another request.
func (w *watches) add(k watchKey, f func(Event)) (node *watched, own *watch, armed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	node = w.paths[k]
	if node == nil {
		node = &watched{calls: map[*watch]struct{}{}}
		w.paths[k] = node
	}
	own = &watch{f}
	node.calls[own] = struct{}{}
	return node, own, node.armed
}

// arm records that the server will notify. If the node is another one by now, it has done so already.
func (w *watches) arm(k watchKey, node *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !node.armed && w.paths[k] == node {
		node.armed = true
		w.count++
	}
}

func (w *watches) remove(k watchKey, node *watched, own *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(node.calls, own)
	if !node.armed && len(node.calls) == 0 && w.paths[k] == node {
		delete(w.paths, k)
	}
}

// fire notifies the watchers of path, once.
func (w *watches) fire(path string, what zk.EventType) {
	switch what {
	case zk.EventNodeDataChanged:
		w.notify(watchKey{path, false}, Changed)
	case zk.EventNodeChildrenChanged:
		w.notify(watchKey{path, true}, Changed)
	case zk.EventNodeDeleted:
		w.notify(watchKey{path, false}, Deleted)
		w.notify(watchKey{path, true}, Deleted)
	default: // fireAll reports the end of the session
	}
}

func (w *watches) notify(k watchKey, e Event) {
	w.mu.Lock()
	node := w.paths[k]
	if node == nil {
		w.mu.Unlock()
		return
	}
	delete(w.paths, k)
	if node.armed {
		w.count--
	}
	calls := node.calls
	node.calls = map[*watch]struct{}{} // a late remove must not meet the loop below
	w.mu.Unlock()
	for own := range calls {
		own.f(e)
	}
}

// fireAll ends all watches.
func (w *watches) fireAll() {
	w.mu.Lock()
	keys := slices.Collect(maps.Keys(w.paths))
	w.mu.Unlock()
	for _, k := range keys {
		w.notify(k, Ended)
	}
}

// GetW is Get with a watch. f is called once, when the node is changed or deleted after the returned state, or when the
// session ends. It is called from a goroutine of the connection and must not block. It may be called before GetW
// returns, and once too often: the returned state may be newer than the one that f received. The caller must call stop,
// which ends the interest in f. There is no watch if GetW fails.
func (s *Session) GetW(ctx context.Context, path string, f func(Event)) (data []byte, stat *zk.Stat, stop func(), err error) {
	return readW(ctx, s, "get ", path, false, f, (*zk.Conn).Get, (*zk.Conn).GetW)
}

// ChildrenW is Children with a watch on what it returns, which has the rules of GetW.
func (s *Session) ChildrenW(ctx context.Context, path string, f func(Event)) (names []string, stat *zk.Stat, stop func(), err error) {
	return readW(ctx, s, "children of ", path, true, f, (*zk.Conn).Children, (*zk.Conn).ChildrenW)
}

// readW reads with a watch, or without one if the server will notify already.
func readW[T any](ctx context.Context, s *Session, what, path string, children bool, f func(Event),
	plain func(*zk.Conn, string) (T, *zk.Stat, error),
	watching func(*zk.Conn, string) (T, *zk.Stat, <-chan zk.Event, error),
) (value T, stat *zk.Stat, stop func(), err error) {
	k := watchKey{s.path(path), children}
	node, own, armed := s.watches.add(k, f)
	stop = func() { s.watches.remove(k, node, own) }
	value, stat, err = read(ctx, s, what, path, func(conn *zk.Conn, full string) (T, *zk.Stat, error) {
		if armed {
			return plain(conn, full)
		}
		value, stat, _, err := watching(conn, full)
		if err == nil {
			s.watches.arm(k, node)
		}
		return value, stat, err
	})
	if err != nil {
		stop()
		return value, nil, nil, err
	}
	return value, stat, stop, nil
}
