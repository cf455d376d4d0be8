package zklock

import (
	"sync"

	"example.com/shop/internal/zookeeper"
)

// maxQuiet bounds the memory that keys cost which are used once.
const maxQuiet = 1024

// mark is a state of a directory. Each creation in it makes another one.
type mark struct {
	parent  uint64
	version int32
}

// anyMark is any state.
func anyMark() mark { return mark{version: -1} }

// quiet knows directories in which nobody else has created a node of late. Where
// this process was the first, has left, and nobody has come since, the next node is
// the first again: that is one request instead of two, whose condition fails if it
// is not so.
type quiet struct {
	mu   sync.Mutex
	dirs map[string]calm
}

// calm is what is known of a directory after the last node that this process has
// created there.
type calm struct {
	mark

	left   bool // that node was the first, and is deleted
	steady bool // nobody else had created one between it and the one before
}

// since returns the state in which the directory was left, and whether it is worth a
// try.
func (q *quiet) since(dir string) (mark, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.dirs[dir]; c.left && c.steady {
		return c.mark, true
	}
	return anyMark(), false
}

func (q *quiet) disturbed(dir string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.dirs, dir)
}

func (q *quiet) created(c claim, n zookeeper.Node) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.kind == kindRead { // it need not be the first
		delete(q.dirs, c.dir)
		return
	}
	if q.dirs == nil || len(q.dirs) >= maxQuiet {
		q.dirs = map[string]calm{}
	}
	last := q.dirs[c.dir]
	q.dirs[c.dir] = calm{
		mark:   mark{n.Parent, n.Version},
		steady: last.parent == n.Parent && last.version+1 == n.Version,
	}
}

// released is called when the node of a holder is deleted.
func (q *quiet) released(g *grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c, ok := q.dirs[g.dir]; ok && c.mark == (mark{g.node.Parent, g.node.Version}) {
		c.left = true
		q.dirs[g.dir] = c
	}
}
