package blackbox_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestRevocationEndsStreamsAtOnce: the instance is notified that a key was revoked. Its streams end then, though no heartbeat is
// due for an hour, and those of others continue. It is notified again of a key that works, which continues, too.
func TestRevocationEndsStreamsAtOnce(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	here, err := identity.New(store, identity.Config{Keep: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := identity.New(store, identity.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var texts, prefixes [2]string
	for i := range texts {
		text, k, err := here.Create(t.Context(), identity.NewKey{Customer: "c1"})
		if err != nil {
			t.Fatal(err)
		}
		texts[i], prefixes[i] = text, k.Prefix
	}
	s := newStationWith(t, here, events.FeedConfig{}, time.Hour, time.Hour)
	client := streamClient(t)
	for range 3 {
		go io.Copy(io.Discard, s.open(t, client, texts[0], "", "").body)
	}
	other := s.open(t, client, texts[1], "", "")
	for i, p := range prefixes {
		here.Forget(p)
		// Streams that ask again later than the key is revoked get this answer.
		if _, err := here.Authenticate(t.Context(), texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := elsewhere.Revoke(t.Context(), prefixes[0]); err != nil {
		t.Fatal(err)
	}
	if n := s.feed.Stats().Listeners; n != 4 {
		t.Errorf("%d streams before anybody was notified", n)
	}
	here.Forget(prefixes[0])
	testbedtest.Eventually(t, "its streams have ended", func() bool { return s.feed.Stats().Listeners == 1 })
	s.Order(liveOrder(lastOrder, "c1"))
	upTo(t, other.body, lastOrder)
}

// TestRevocationWithoutNotificationEndsStreams: a key is revoked, at any time after the stream began. Nobody notifies the instance; the
// stream ends within identity.Keep and a heartbeat, 15 s, also where an event comes just before each heartbeat.
func TestRevocationWithoutNotificationEndsStreams(t *testing.T) {
	for after := range 21 {
		synctest.Test(t, func(t *testing.T) {
			log := memlog.New()
			feed, err := events.NewFeed(log, events.FeedConfig{})
			if err != nil {
				t.Fatal(err)
			}
			shelf := new(oneKey)
			known, err := identity.New(shelf, identity.Config{})
			if err != nil {
				t.Fatal(err)
			}
			text, _, err := known.Create(t.Context(), identity.NewKey{Admin: true})
			if err != nil {
				t.Fatal(err)
			}
			h := newHandler(t, httpapi.Config{Events: feed, Identity: known})
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			defer group.Wait()
			defer stop()
			group.Go(func() { _ = feed.Run(ctx) })
			tell := events.NewPublisher(log, events.PublisherConfig{Instance: "i1"})
			group.Go(func() { _ = tell.Run(ctx) })
			group.Go(func() {
				for ctx.Err() == nil {
					tell.Leader(events.Leader{Name: "i1"})
					select {
					case <-ctx.Done():
					case <-time.After(9900 * time.Millisecond):
					}
				}
			})
			group.Go(func() { // somebody uses the key at the same time
				for ctx.Err() == nil {
					_, _ = known.Authenticate(ctx, text)
					select {
					case <-ctx.Done():
					case <-time.After(700 * time.Millisecond):
					}
				}
			})
			var revoked time.Time
			time.AfterFunc(time.Duration(after)*time.Second, func() {
				revoked = time.Now()
				shelf.revoked.Store(true)
			})
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events", nil)
			r.Header.Set("Authorization", "Bearer "+text)
			time.AfterFunc(5*time.Minute, stop)
			h.ServeHTTP(httptest.NewRecorder(), r)
			if took := time.Since(revoked); revoked.IsZero() || took > 15*time.Second {
				t.Errorf("revoked after %d s: the stream lived for %v", after, took)
			}
		})
	}
}

// oneKey has one key.
type oneKey struct {
	identity.Store

	record  identity.Record
	revoked atomic.Bool
}

func (s *oneKey) CreateKey(_ context.Context, k identity.Key, hash [32]byte, _ time.Duration) (identity.Key, error) {
	k.State = identity.Active
	s.record = identity.Record{Key: k, Hash: hash}
	return k, nil
}

func (s *oneKey) Key(_ context.Context, prefix string) (identity.Record, error) {
	r := s.record
	if prefix != r.Prefix {
		return identity.Record{}, errors.New("another key")
	}
	if s.revoked.Load() {
		r.State = identity.Revoked
	}
	return r, nil
}
