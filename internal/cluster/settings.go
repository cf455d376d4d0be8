package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// SettingsConfig is the configuration of [Settings].
type SettingsConfig struct {
	// Store is where the values are. Required.
	Store ConfigStore

	// OnError receives, once each, values that are refused and of a store that does
	// not answer. It must not block. Default: none.
	OnError func(error)
}

// Settings are an instance's copy of the configuration. Settings are added with
// [Define]. It is safe for concurrent use.
//
// Guarantees, by test: A value that is set is in force at every instance (SetIsSeenByAll). Of writes that race one wins
// (OneOfRacingWritesWins), and a conflict changes nothing (ConflictChangesNothing). An invalid value is not written
// (InvalidIsNotWritten), or refused and reported once (BadValueIsRefused). Without the store the last values stay
// (StoreAwayKeepsTheLast). A deleted setting has its default (UnsetIsTheDefault). A write without an answer says so
// (LostReplyIsUncertain).
type Settings struct {
	cfg SettingsConfig

	applying sync.Mutex // one snapshot of the store after the other

	mu      sync.Mutex
	slots   map[string]slot
	stale   error
	changed chan struct{} // closed when a value changes
}

// slot is a [Setting] of any type.
type slot interface {
	check(text string) error
	apply(stored Entry) (changed bool, refused error)
	state() State
}

// State is a setting as an administrator sees it.
type State struct {
	Name    string
	Value   string // in force
	Version int64  // of Value; 0 for the default
	Stored  int64  // the version that the store has, for the next write; another one than Version if its value was refused
	Refused error  // why; nil if it was not
}

// NewSettings returns a copy that has no settings yet.
func NewSettings(cfg SettingsConfig) (*Settings, error) {
	if cfg.Store == nil {
		return nil, errors.New("cluster: settings: a store is required")
	}
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	return &Settings{cfg: cfg, slots: map[string]slot{}, changed: make(chan struct{})}, nil
}

// Load reads the store once. It blocks until there is an answer, a reading fails, or ctx ends, and returns why:
// [ErrStale], or [ErrInvalid] for values that were refused. After an error, the settings that could be read are in
// force, and the others have their defaults.
func (s *Settings) Load(ctx context.Context) error {
	for entries, err := range s.cfg.Store.Entries(ctx, s.names()...) {
		if err != nil {
			return fmt.Errorf("cluster: load settings: %w", err)
		}
		s.apply(entries)
		var refused []error // also what Run has come across
		for _, state := range s.All() {
			refused = append(refused, state.Refused)
		}
		return errors.Join(refused...)
	}
	return fmt.Errorf("cluster: load settings: %w", context.Cause(ctx))
}

// Run keeps the copy up to date until ctx ends, and then returns nil. A value that is
// not valid is not applied, and OnError is called: what was in force stays. So it does
// when the store does not answer. An entry that is deleted makes its setting have
// the default again.
func (s *Settings) Run(ctx context.Context) error {
	for entries, err := range s.cfg.Store.Entries(ctx, s.names()...) {
		if s.setStale(err); err != nil {
			s.cfg.OnError(fmt.Errorf("cluster: settings: %w", err))
			continue
		}
		for _, refused := range s.apply(entries) {
			s.cfg.OnError(refused)
		}
	}
	return nil
}

// Set writes text as the value of a setting, provided that the store has that version
// of it: 0 if it has none. It returns the new version; [ErrUnknownKey] or [ErrInvalid]
// without asking the store; and what [ConfigStore].Write returns. After an error that is
// not [ErrUncertain] the store is as it was. The new value comes into force here as
// everywhere, a moment later.
func (s *Settings) Set(ctx context.Context, name, text string, version int64) (int64, error) {
	s.mu.Lock()
	one := s.slots[name]
	s.mu.Unlock()
	if one == nil {
		return 0, fmt.Errorf("%w: %.80q; there are %s", ErrUnknownKey, name, strings.Join(s.names(), ", "))
	}
	if err := one.check(text); err != nil {
		return 0, err
	}
	written, err := s.cfg.Store.Write(ctx, name, text, version)
	if err != nil {
		return 0, fmt.Errorf("cluster: set %s: %w", name, err)
	}
	return written, nil
}

// All returns the state of all settings, in the order of their names.
func (s *Settings) All() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]State, 0, len(s.slots))
	for _, name := range slices.Sorted(maps.Keys(s.slots)) {
		states = append(states, s.slots[name].state())
	}
	return states
}

// Stale returns nil while the store answers, otherwise [ErrStale] and the reason.
func (s *Settings) Stale() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}

func (s *Settings) setStale(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = err
}

func (s *Settings) add(name string, one slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[name] != nil {
		return fmt.Errorf("cluster: setting %q is defined twice", name)
	}
	s.slots[name] = one
	return nil
}

func (s *Settings) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.slots))
}

// next returns a channel that is closed at the next change.
func (s *Settings) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// apply puts what the store has into force, and returns what was refused.
func (s *Settings) apply(entries map[string]Entry) (refused []error) {
	s.applying.Lock()
	defer s.applying.Unlock()
	news := false
	for _, name := range s.names() {
		s.mu.Lock()
		one := s.slots[name]
		s.mu.Unlock()
		changed, err := one.apply(entries[name])
		if err != nil {
			refused = append(refused, err)
		}
		news = news || changed
	}
	if news {
		s.mu.Lock()
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
	return refused
}
