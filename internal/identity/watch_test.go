package identity_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/identity"
)

// elsewhere revokes a key in another process.
func elsewhere(t *testing.T, s *shelf, text string) {
	t.Helper()
	other, err := identity.New(s, identity.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Revoke(t.Context(), prefixOf(text)); err != nil {
		t.Fatal(err)
	}
}

func works(t *testing.T, s *identity.Service, text string) bool {
	t.Helper()
	_, err := s.Authenticate(t.Context(), text)
	if err != nil && !errors.Is(err, identity.ErrUnauthenticated) {
		t.Error(err)
	}
	return err == nil
}

// A process that is notified of a revocation refuses the key at once, and looks no other key up.
func TestForget(t *testing.T) {
	s, shelf := newService(t, identity.Config{Keep: time.Minute})
	text, other := makeKey(t, s, identity.NewKey{Customer: "c1"}), makeKey(t, s, identity.NewKey{Customer: "c2"})
	works(t, s, text)
	works(t, s, other)
	elsewhere(t, shelf, text)
	if !works(t, s, text) {
		t.Error("no notification was sent yet")
	}
	s.Forget(prefixOf(text))
	s.Forget("")
	s.Forget(goldenPrefix)
	if works(t, s, text) || !works(t, s, other) || shelf.count() != 3 {
		t.Errorf("after %d lookups, want 3", shelf.count())
	}
	if _, err := s.Revoke(t.Context(), prefixOf(other)); err != nil || works(t, s, other) {
		t.Errorf("revoked here: %v", err)
	}
}

// A lookup that has read the key before it was revoked answers after the process was notified. Neither a
// later request nor memory takes that answer.
func TestForgetDuringALookupDropsItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{Keep: time.Minute})
		shelf.reply = time.Second
		text := makeKey(t, s, identity.NewKey{Admin: true})
		first := make(chan bool)
		go func() { first <- works(t, s, text) }()
		synctest.Wait()
		elsewhere(t, shelf, text)
		s.Forget(prefixOf(text))
		second := make(chan bool)
		go func() { second <- works(t, s, text) }()
		if !<-first {
			t.Error("asked before")
		}
		if works(t, s, text) || <-second {
			t.Error("asked after: the key works")
		}
	})
}

// The answer to a question from before comes after that to one from after, and is not kept.
func TestLateLookupIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{Keep: time.Minute})
		shelf.reply = time.Second
		text := makeKey(t, s, identity.NewKey{Admin: true})
		first := make(chan bool)
		go func() { first <- works(t, s, text) }()
		synctest.Wait()
		elsewhere(t, shelf, text)
		s.Forget(prefixOf(text))
		shelf.set(func() { shelf.reply = 0 })
		if works(t, s, text) || !<-first || works(t, s, text) {
			t.Error("the key works again")
		}
	})
}

// A process that may have missed a revocation asks for every key again.
func TestForgetAll(t *testing.T) {
	s, shelf := newService(t, identity.Config{Keep: time.Minute})
	text, other := makeKey(t, s, identity.NewKey{Customer: "c1"}), makeKey(t, s, identity.NewKey{Customer: "c2"})
	works(t, s, text)
	works(t, s, other)
	elsewhere(t, shelf, text)
	s.ForgetAll()
	if works(t, s, text) || !works(t, s, other) || shelf.count() != 4 {
		t.Errorf("after %d lookups, want 4", shelf.count())
	}
}

// A watcher of a key is notified each time that the key is forgotten, until it stops.
func TestWatch(t *testing.T) {
	s, _ := newService(t, identity.Config{})
	var one, two, other int
	stop := s.Watch("one", func() { one++ })
	defer s.Watch("one", func() { two++ })()
	defer s.Watch("other", func() { other++ })()
	s.Forget("one")
	stop()
	stop()
	s.Forget("one")
	s.ForgetAll()
	if one != 1 || two != 2 || other != 0 {
		t.Errorf("notified %d, %d and %d times", one, two, other)
	}
}
