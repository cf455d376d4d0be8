package identity

import "sync"

// Forget drops the cached result for a prefix, because the key may have been revoked. The next request looks the key
// up, and no later request gets an earlier result. Watchers of the key are notified. For an unknown prefix,
// it does nothing. Call it for each notification of a revocation; if a notification is lost, [Config.Keep]
// bounds for how long the key continues working.
func (s *Service) Forget(prefix string) {
	if prefix == "" {
		return
	}
	s.memory.invalidate(prefix)
	s.watchers.tell(prefix)
}

// ForgetAll does the same for every key. Call it if notifications may have been lost. It does not notify watchers, so that
// they do not all authenticate at once.
func (s *Service) ForgetAll() { s.memory.invalidate("") }

// Watch calls changed when the key with a prefix is forgotten, until stop is called; once or more often.
// It must not block. A long-lived user of a key that watches it and authenticates on each change learns of a revocation when this
// process does. It must also authenticate from time to time, because notifications can be lost.
func (s *Service) Watch(prefix string, changed func()) (stop func()) {
	return s.watchers.add(prefix, changed)
}

// watchers are the functions of Watch by prefix.
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
