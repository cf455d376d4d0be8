package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Protected describes an ephemeral sequential node that is to be created.
type Protected struct {
	Dir   string // its parent, a container that is made on demand
	Label string // what comes in its name between the ID and the number
	Data  []byte

	// ParentVersion is the version that the parent must have, or zk.ErrBadVersion is
	// returned. -1 means any. Each creation changes the version, so that it tells
	// whether another one has come between. The data of the parent is not for use.
	ParentVersion int32
}

// Node is a protected node.
type Node struct {
	ID      string // random: the first part of the name, by which the node is found again
	Path    string // full, but for the root
	Zxid    uint64 // of the creation, and of the change of the parent
	Version int32  // of the parent after the creation
	Epoch   uint64 // of the session at the time
}

// Name returns the last part of the path.
func (n Node) Name() string { return n.Path[strings.LastIndexByte(n.Path, '/')+1:] }

// CreateProtected creates an ephemeral node whose name is ID-LABEL followed by a
// number of ten digits that grows. After an error there is no node, or will soon be
// none: if the outcome is unknown the node is looked for by its ID and deleted in
// the background, however long that takes.
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

// create gives back what comes of an attempt with an unknown outcome.
func (s *Session) create(ctx context.Context, id string, p Protected) (Node, error) {
	left := func(n Node, err error) { // the caller has gone
		if err == nil {
			s.DeleteLater(n.Path)
		}
	}
	return confirming(ctx, s, "create in "+p.Dir, func(conn *zk.Conn) (Node, error) {
		epoch := s.Epoch()
		r, err := conn.Multi(
			&zk.SetDataRequest{Path: s.path(p.Dir), Data: []byte{}, Version: p.ParentVersion},
			&zk.CreateRequest{
				Path: s.path(p.Dir) + "/" + id + "-" + p.Label, Data: append([]byte{}, p.Data...),
				Acl: acl(), Flags: zk.FlagEphemeralSequential,
			},
		)
		if err != nil {
			if errors.Is(explain(err), ErrUncertain) {
				s.orphans.add(s, orphan{dir: p.Dir, id: id})
			}
			return Node{}, err
		}
		return Node{
			ID: id, Path: strings.TrimPrefix(r[1].String, s.cfg.Root),
			Zxid: uint64(r[0].Stat.Mzxid), Version: r[0].Stat.Version, Epoch: epoch,
		}, nil
	}, left)
}
