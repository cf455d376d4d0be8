package identity_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/identity"
)

func TestAuthenticate(t *testing.T) {
	s, _ := newService(t, identity.Config{})
	admin, customer := makeKey(t, s, identity.NewKey{Admin: true, Name: "a"}), makeKey(t, s, identity.NewKey{Customer: "c1", Life: time.Hour})
	both := makeKey(t, s, identity.NewKey{Customer: "c2", Admin: true})
	for range 2 { // from the store, and from memory
		for text, want := range map[string]identity.Caller{
			admin:    {Admin: true, KeyPrefix: prefixOf(admin)},
			customer: {Customer: "c1", KeyPrefix: prefixOf(customer)},
			both:     {Customer: "c2", Admin: true, KeyPrefix: prefixOf(both)},
		} {
			if c, err := s.Authenticate(t.Context(), text); err != nil || c != want {
				t.Errorf("%+v, %v, want %+v", c, err, want)
			}
		}
	}
}

// All refusals have the same error with the same text and no rights, at first and when the key is known. Only the log
// has the reason.
func TestRefusalsLookAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newService(t, identity.Config{})
		good, revoked := makeKey(t, s, identity.NewKey{Admin: true}), makeKey(t, s, identity.NewKey{Admin: true})
		expired := makeKey(t, s, identity.NewKey{Customer: "c1", Life: time.Second})
		if _, err := s.Revoke(t.Context(), prefixOf(revoked)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wrong := [32]byte{1}
		for range 3 {
			for text, want := range map[string]identity.RefusedError{
				"":                                       {Why: identity.ReasonMalformed},
				"Bearer " + good:                         {Why: identity.ReasonMalformed},
				good[:71]:                                {Why: identity.ReasonMalformed},
				golden:                                   {Prefix: goldenPrefix, Why: identity.ReasonUnknown},
				forge(goldenPrefix, [32]byte{}):          {Prefix: goldenPrefix, Why: identity.ReasonUnknown},
				forge(prefixOf(good), wrong):             {Prefix: prefixOf(good), Why: identity.ReasonSecret},
				forge(prefixOf(revoked), wrong):          {Prefix: prefixOf(revoked), Why: identity.ReasonSecret},
				good[:5] + prefixOf(revoked) + good[15:]: {Why: identity.ReasonMalformed},
				revoked:                                  {Prefix: prefixOf(revoked), Why: identity.ReasonRevoked},
				expired:                                  {Prefix: prefixOf(expired), Why: identity.ReasonExpired},
			} {
				c, err := s.Authenticate(t.Context(), text)
				r, ok := errors.AsType[*identity.RefusedError](err)
				if !ok || *r != want || c != (identity.Caller{}) {
					t.Errorf("%q: %+v, %+v, want %+v", text, c, r, want)
				}
				if !errors.Is(err, identity.ErrUnauthenticated) || errors.Is(err, identity.ErrUnavailable) || err.Error() != identity.ErrUnauthenticated.Error() {
					t.Errorf("%q: %v", text, err)
				}
			}
			if c, err := s.Authenticate(t.Context(), good); err != nil || !c.Admin {
				t.Errorf("the good key: %v", err)
			}
			time.Sleep(identity.Keep / 2)
		}
	})
}

// While many requests carry a key it is revoked, elsewhere. From then on it works for Keep at
// most, and no request that comes later slips through.
func TestKeyRevokedWhileInUseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{})
		shelf.reply = 300 * time.Millisecond
		text := makeKey(t, s, identity.NewKey{Admin: true})
		start := time.Now()
		var mu sync.Mutex
		var last, refused time.Duration // of the last success, of the first refusal
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for time.Since(start) < 20*time.Second {
					_, err := s.Authenticate(t.Context(), text)
					mu.Lock()
					switch at := time.Since(start); {
					case err == nil:
						last = max(last, at)
					case !errors.Is(err, identity.ErrUnauthenticated):
						t.Errorf("after %s: %v", at, err)
					case refused == 0:
						refused = at
					}
					mu.Unlock()
					time.Sleep(47 * time.Millisecond)
				}
			})
		}
		const after = 7 * time.Second
		time.Sleep(after)
		other, err := identity.New(shelf, identity.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Revoke(t.Context(), prefixOf(text)); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if last < after || last > after+identity.Keep || refused < last {
			t.Errorf("revoked after %s: the last success was after %s, the first refusal after %s", after, last, refused)
		}
	})
}

// A lookup reads the key before it is revoked and answers after. Its result counts as read before the revocation.
func TestKeyRevokedDuringALookupIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{})
		shelf.reply = identity.LookUpTimeout - time.Millisecond
		text := makeKey(t, s, identity.NewKey{Admin: true})
		first := make(chan error)
		go func() {
			_, err := s.Authenticate(t.Context(), text)
			first <- err
		}()
		synctest.Wait()
		elsewhere(t, shelf, text)
		if err := <-first; err != nil {
			t.Errorf("asked before: %v", err)
		}
		shelf.set(func() { shelf.reply = 0 })
		time.Sleep(identity.Keep - identity.LookUpTimeout)
		if _, err := s.Authenticate(t.Context(), text); err != nil {
			t.Errorf("just before Keep: %v", err)
		}
		time.Sleep(time.Millisecond)
		if _, err := s.Authenticate(t.Context(), text); !errors.Is(err, identity.ErrUnauthenticated) {
			t.Errorf("after Keep: %v", err)
		}
	})
}

// A key ends when it is due, even if it was just used and however wrong the clocks are, without another lookup.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{})
		text := makeKey(t, s, identity.NewKey{Customer: "c1", Life: 8 * time.Second})
		shelf.reply = time.Second
		for _, c := range []struct {
			after time.Duration
			works bool
		}{{4 * time.Second, true}, {3*time.Second - time.Millisecond, true}, {time.Millisecond, false}, {time.Minute, false}} {
			time.Sleep(c.after)
			if _, err := s.Authenticate(t.Context(), text); (err == nil) != c.works || err != nil && !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf("%s later: %v", c.after, err)
			}
			if c.after == time.Millisecond && shelf.count() != 1 {
				t.Errorf("%d lookups until it ended, want 1", shelf.count())
			}
		}
	})
}

// When the database is unavailable nobody is let in and nobody is notified that the key is wrong. Remembered results
// hold as long as ever, and no longer.
func TestUnavailable(t *testing.T) {
	away := errors.New("the database is unavailable")
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{})
		seen, fresh := makeKey(t, s, identity.NewKey{Admin: true}), makeKey(t, s, identity.NewKey{Admin: true})
		if _, err := s.Authenticate(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
		shelf.set(func() { shelf.failing = away })
		unavailable := func(text string) {
			t.Helper()
			c, err := s.Authenticate(t.Context(), text)
			if !errors.Is(err, identity.ErrUnavailable) || !errors.Is(err, away) || errors.Is(err, identity.ErrUnauthenticated) || c != (identity.Caller{}) {
				t.Fatalf("%+v, %v", c, err)
			}
			shows(t, err.Error(), text)
		}
		unavailable(fresh)
		unavailable(golden)
		time.Sleep(identity.Keep - time.Millisecond)
		if _, err := s.Authenticate(t.Context(), seen); err != nil {
			t.Errorf("remembered: %v", err)
		}
		time.Sleep(time.Millisecond)
		unavailable(seen)
		if _, err := s.Authenticate(t.Context(), "no key"); !errors.Is(err, identity.ErrUnauthenticated) {
			t.Errorf("what is no key is none without a database: %v", err)
		}
		shelf.set(func() { shelf.failing = nil })
		for _, text := range []string{seen, fresh} {
			if _, err := s.Authenticate(t.Context(), text); err != nil {
				t.Errorf("when it has recovered: %v", err)
			}
		}
		if _, err := s.Authenticate(t.Context(), golden); !errors.Is(err, identity.ErrUnauthenticated) {
			t.Errorf("when it has recovered: %v", err)
		}
	})
}

// A database that says nothing is waited for, but not for long; who gives up earlier leaves
// the others waiting.
func TestUnansweredLookupIsBounded(t *testing.T) {
	gone := errors.New("the client is gone")
	synctest.Test(t, func(t *testing.T) {
		s, shelf := newService(t, identity.Config{})
		text := makeKey(t, s, identity.NewKey{Admin: true})
		shelf.reply = time.Hour
		start := time.Now()
		if _, err := s.Authenticate(t.Context(), text); !errors.Is(err, identity.ErrUnavailable) || time.Since(start) != identity.LookUpTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		shelf.reply = time.Second
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := s.Authenticate(ctx, text); !errors.Is(err, identity.ErrUnavailable) || !errors.Is(err, gone) {
				t.Errorf("who gave up: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := s.Authenticate(t.Context(), text); err != nil {
				t.Errorf("who waits: %v", err)
			}
		})
		synctest.Wait()
		cancel(gone)
		wg.Wait()
		if n := shelf.count(); n != 2 {
			t.Errorf("%d lookups, want 2", n)
		}
	})
}
