package identity_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/identity"
)

// However many requests carry a key, the database is asked for it once per Keep; wrong
// secrets for its prefix do not add to that.
func TestConcurrentCallersShareOneLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{})
		text := makeKey(t, s, identity.NewKey{Customer: "c1"})
		shelf.reply = 100 * time.Millisecond
		for round := 1; round <= 3; round++ {
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					if _, err := s.Authenticate(t.Context(), text); err != nil {
						t.Error(err)
					}
					if _, err := s.Authenticate(t.Context(), forge(prefixOf(text), [32]byte{byte(i), byte(i >> 8)})); !errors.Is(err, identity.ErrUnauthenticated) {
						t.Errorf("wrong secret: %v", err)
					}
				})
			}
			wg.Wait()
			if n := shelf.count(); n != round {
				t.Errorf("%d lookups in %d rounds", n, round)
			}
			time.Sleep(identity.Keep)
		}
	})
}

// A flood of guesses has few lookups under way at once, and asks for no prefix twice. The keys in use keep their place
// in memory and their lookups.
func TestGuessedKeysAreRefusedCheaply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{MaxKeys: 10})
		text := makeKey(t, s, identity.NewKey{Customer: "c1"})
		if _, err := s.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := s.Authenticate(t.Context(), golden); !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf("%v", err)
			}
		}
		if n := shelf.count(); n != 2 {
			t.Errorf("%d lookups for a key and a guess, want 2", n)
		}
		time.Sleep(identity.Keep)

		shelf.reply = 10 * time.Millisecond
		start := time.Now()
		var mu sync.Mutex
		refused, shed := 0, 0
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				_, err := s.Authenticate(t.Context(), guess(i))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, identity.ErrUnauthenticated):
					refused++
				case errors.Is(err, identity.ErrUnavailable):
					shed++
				default:
					t.Errorf("a guess: %v", err)
				}
			})
		}
		synctest.Wait()
		if _, err := s.Authenticate(t.Context(), text); err != nil || time.Since(start) != shelf.reply {
			t.Errorf("the key in use, after %s: %v", time.Since(start), err)
		}
		wg.Wait()
		if took := time.Since(start); took > identity.LookUpTimeout || refused < 350 || shed < 350 {
			t.Errorf("%d guesses were looked up, %d were not, within %s", refused, shed, took)
		}
		if most := identity.MaxUnknownLookups + 1; shelf.most > most {
			t.Errorf("%d lookups at once, want at most %d", shelf.most, most)
		}
		before := shelf.count()
		if _, err := s.Authenticate(t.Context(), text); err != nil || shelf.count() != before {
			t.Errorf("the key in use was forgotten: %d lookups, %v", shelf.count()-before, err)
		}
	})
}

// A key that turns out to exist, or to exist no more, is remembered as that.
func TestCachedKeyIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{Keep: time.Second})
		text := makeKey(t, s, identity.NewKey{Admin: true})
		r := shelf.keys[prefixOf(text)]
		for range 3 {
			shelf.set(func() { delete(shelf.keys, prefixOf(text)) })
			time.Sleep(time.Second)
			if _, err := s.Authenticate(t.Context(), text); !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf("without its row: %v", err)
			}
			shelf.set(func() { shelf.keys[prefixOf(text)] = r })
			if _, err := s.Authenticate(t.Context(), text); !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf("within Keep: %v", err)
			}
			time.Sleep(time.Second)
			if _, err := s.Authenticate(t.Context(), text); err != nil {
				t.Errorf("with its row: %v", err)
			}
		}
	})
}
