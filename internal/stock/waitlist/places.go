package waitlist

import "sync"

// places are those of a process for waiters. An owner has a few at most. A key has at most as many as it leaves free.
// So a key in demand takes half of them, the next one a quarter, and a new key still finds a place. (A dynamic
// threshold, which Choudhury and Hahne describe for the queues of a switch.)
type places struct {
	all, perOwner int

	mu     sync.Mutex
	taken  int
	keys   map[string]int
	owners map[string]int
}

func newPlaces(all, perOwner int) *places {
	return &places{all: all, perOwner: perOwner, keys: make(map[string]int), owners: make(map[string]int)}
}

// enter takes a place, and returns how to leave it, or [ErrFull].
func (p *places) enter(key, owner string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys[key] >= p.all-p.taken || owner != "" && p.owners[owner] >= p.perOwner {
		return nil, ErrFull
	}
	p.add(key, owner, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(key, owner, -1)
	}, nil
}

func (p *places) add(key, owner string, n int) {
	p.taken += n
	if p.keys[key] += n; p.keys[key] == 0 {
		delete(p.keys, key)
	}
	if p.owners[owner] += n; p.owners[owner] == 0 {
		delete(p.owners, owner)
	}
}

// count returns how many are taken.
func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
