package zklock

import (
	"sync"

	"example.com/shop/internal/platform/zookeeper"
)

// maxUncontended bounds the memory for keys that are used once.
const maxUncontended = 1024

// mark is a state of a directory. Each creation in it makes another one.
type mark struct {
	parent  uint64
	version int32
}

// anyMark is any state.
func anyMark() mark { return mark{version: -1} }

// uncontended tracks directories in which only this process has created nodes lately. If its last node there was the
// first and is deleted, and nobody has created another one, its next node is the first again. So Acquire sends one
// request instead of two, whose condition fails otherwise.
type uncontended struct {
	mu   sync.Mutex
	dirs map[string]lastUse
}

// lastUse describes a directory after the last node that this process created there.
type lastUse struct {
	mark

	left   bool // that node was the first, and is deleted
	steady bool // nobody else had created one between it and the one before
}

// since returns the state in which the directory was left, and whether it is worth a try.
func (u *uncontended) since(dir string) (mark, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.dirs[dir]; c.left && c.steady {
		return c.mark, true
	}
	return anyMark(), false
}

func (u *uncontended) forget(dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.dirs, dir)
}

func (u *uncontended) created(c claim, n zookeeper.Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirs == nil || len(u.dirs) >= maxUncontended {
		u.dirs = map[string]lastUse{}
	}
	last := u.dirs[c.dir]
	u.dirs[c.dir] = lastUse{
		mark:   mark{n.Parent, n.Version},
		steady: last.parent == n.Parent && last.version+1 == n.Version,
	}
}

// released is called when the node of a holder is deleted.
func (u *uncontended) released(g *grant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c, ok := u.dirs[g.dir]; ok && c.mark == (mark{g.node.Parent, g.node.Version}) {
		c.left = true
		u.dirs[g.dir] = c
	}
}
