package identity

import "sync"

// Forget has the key with a prefix looked up when it is seen next: it may have been revoked. No request
// that comes later gets an answer from before. Whoever watches the key is told. For a prefix that is nobody's
// it does nothing. It is what messages are for that tell of a revocation; where one is lost, [Config.Keep]
// bounds for how long the key goes on working.
func (s *Service) Forget(prefix string) {
	if prefix == "" {
		return
	}
	s.memory.doubt(prefix)
	s.watchers.tell(prefix)
}

// ForgetAll does the same for every key, when messages may have been lost; but nobody is told, so that not all
// who watch come with their questions at once.
func (s *Service) ForgetAll() { s.memory.doubt("") }

// Watch calls changed when the key with a prefix is forgotten, until stop is called; once or more often.
// It must not block. Who relies on a key for long, and watches it, and asks then, learns of a revocation when this
// process does; but must ask from time to time, as nobody may tell.
func (s *Service) Watch(prefix string, changed func()) (stop func()) {
	return s.watchers.add(prefix, changed)
}

// watchers are those who watch keys.
type watchers struct {
	mu sync.Mutex
	by map[string]map[*watcher]struct{}
}

type watcher struct{ changed func() }

func (w *watchers) add(prefix string, changed func()) (stop func()) {
	one := &watcher{changed}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[prefix] == nil {
		w.by[prefix] = make(map[*watcher]struct{})
	}
	w.by[prefix][one] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by[prefix], one)
		if len(w.by[prefix]) == 0 {
			delete(w.by, prefix)
		}
	}
}

func (w *watchers) tell(prefix string) {
	w.mu.Lock()
	var all []*watcher
	for one := range w.by[prefix] {
		all = append(all, one)
	}
	w.mu.Unlock()
	for _, one := range all {
		one.changed()
	}
}
