package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Protected describes an ephemeral sequential node that is to be created.
type Protected struct {
	Dir   string // its parent, a container that is made on demand
	Label string // what comes in its name between the ID and the number
	Data  []byte

	// List has the children of Dir read in the same round trip.
	List bool

	// ParentVersion is the version that the parent must have, or zk.ErrBadVersion is returned. -1 means any. Each
	// creation changes the version, so it shows whether another one has come between. The data of the parent is not for
	// use.
	ParentVersion int32
}

// Node is a protected node.
type Node struct {
	ID      string // random: the first part of the name, by which the node is found again
	Path    string // full, but for the root
	Zxid    uint64 // of the creation, and of the change of the parent
	Version int32  // of the parent after the creation
	Parent  uint64 // the creation of the parent, which distinguishes it from an earlier one of its name
	Epoch   uint64 // of the session at the time

	// Children are the names of all children of the parent, the node among them, some
	// time after the creation. Nil: they were not asked for, or came too early.
	Children []string
}

// Name returns the last part of the path.
func (n Node) Name() string { return n.Path[strings.LastIndexByte(n.Path, '/')+1:] }

// CreateProtected creates an ephemeral node whose name is ID-LABEL followed by a number of ten digits that grows. After
// an error there is no node, or will soon be none. If the outcome is unknown, the node is found by its ID and deleted
// in the background, however long that takes.
func (s *Session) CreateProtected(ctx context.Context, p Protected) (Node, error) {
	id := rand.Text()
	for {
		n, err := s.create(ctx, id, p)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err := s.EnsureContainer(ctx, p.Dir); err != nil {
				return Node{}, err
			}
		case errors.Is(err, ErrUncertain):
			return Node{}, err
		default:
			return n, err
		}
	}
}

// create deletes the node that an attempt with an unknown outcome may have created.
func (s *Session) create(ctx context.Context, id string, p Protected) (Node, error) {
	left := func(n Node, err error) { // the caller has gone
		if err == nil {
			s.DeleteLater(n.Path)
		}
	}
	return confirming(ctx, s, "create in "+p.Dir, func(conn *zk.Conn) (Node, error) {
		n := Node{ID: id, Epoch: s.Epoch()}
		r, err := s.send(conn, p, &n)
		if errors.Is(explain(err), ErrUncertain) {
			s.orphans.add(s, orphan{dir: p.Dir, id: id})
		}
		if err != nil {
			return Node{}, err
		}
		parent := r[0].Stat
		n.Path = strings.TrimPrefix(r[1].String, s.cfg.Root)
		n.Zxid, n.Version, n.Parent = uint64(parent.Mzxid), parent.Version, uint64(parent.Czxid)
		return n, nil
	}, left)
}

// send sends the creation, and the listing right behind it: the requests of a session
// are executed in the order in which they were sent. Which of two goroutines sends
// first is likely, not certain; a listing that came first lacks the node, and is dropped.
func (s *Session) send(conn *zk.Conn, p Protected, n *Node) (r []zk.MultiResponse, err error) {
	create := func() {
		r, err = conn.Multi(
			&zk.SetDataRequest{Path: s.path(p.Dir), Data: []byte{}, Version: p.ParentVersion},
			&zk.CreateRequest{
				Path: s.path(p.Dir) + "/" + n.ID + "-" + p.Label, Data: append([]byte{}, p.Data...),
				Acl: s.acl(), Flags: zk.FlagEphemeralSequential,
			},
		)
	}
	if !p.List {
		create()
		return r, err
	}
	var created sync.WaitGroup
	created.Go(create)
	runtime.Gosched()
	names, _, listing := conn.Children(s.path(p.Dir))
	created.Wait()
	own := func(name string) bool { return strings.HasPrefix(name, n.ID+"-") }
	if listing == nil && slices.ContainsFunc(names, own) {
		n.Children = names
	}
	return r, err
}
