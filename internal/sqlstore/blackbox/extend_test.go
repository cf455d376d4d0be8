package blackbox_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/order"
)

func TestExtend(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		o := place(t, s, time.Hour, "a")
		for n := range 3 {
			got, changed, err := s.Extend(ctx, order.Target{ID: o.ID}, time.Hour, 4*time.Hour)
			if want := o.ExpiresAt.Add(time.Duration(n+1) * time.Hour); err != nil || !changed || !got.ExpiresAt.Equal(want) {
				t.Errorf("extension %d: %v, want %v; changed %v, %v", n, got.ExpiresAt, want, changed, err)
			}
		}
		before, err := s.Order(ctx, o.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, changed, err := s.Extend(ctx, order.Target{ID: o.ID}, time.Microsecond, 4*time.Hour); err != nil || changed || !got.ExpiresAt.Equal(before.ExpiresAt) {
			t.Errorf("beyond its life: %+v, changed %v, %v", got, changed, err)
		}
		paid, expired := place(t, s, time.Hour, "a"), place(t, s, 0, "a")
		if _, _, err := s.Settle(ctx, order.Target{ID: paid.ID}, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]order.Status{paid.ID: order.Confirmed, expired.ID: order.Expired} {
			if got, changed, err := s.Extend(ctx, order.Target{ID: id}, time.Hour, 4*time.Hour); err != nil || changed || got.Status != want {
				t.Errorf("%s: %+v, changed %v, %v", want, got, changed, err)
			}
		}
		if _, _, err := s.Extend(ctx, order.Target{ID: order.NewID()}, time.Hour, 4*time.Hour); !errors.Is(err, order.ErrNotFound) {
			t.Error(err)
		}
		// An extended order does not expire at the old moment.
		var short order.Order
		for ttl, changed := time.Second, false; !changed; ttl *= 2 {
			short = place(t, s, ttl, "a")
			var got order.Order
			if got, changed, err = s.Extend(ctx, order.Target{ID: short.ID}, time.Hour, 4*time.Hour); err != nil || ttl > time.Minute {
				t.Fatal(ttl, changed, err)
			}
			if !changed && got.Status != order.Expired { // only a machine that is too slow explains it
				t.Fatalf("%+v is not extended", got)
			}
		}
		for time.Since(short.ExpiresAt) < 0 {
			if e := expire(t, s, short.ID); e[0].Status != order.Pending {
				t.Errorf("%s", e[0].Status)
			}
			<-time.After(5 * time.Millisecond)
		}
		if e := expire(t, s, short.ID); e[0].Status != order.Pending {
			t.Errorf("after the old moment: %s", e[0].Status)
		}
	})
}

// The replies to COMMIT are lost: orders are expired once. An extension returns an unknown outcome, because it cannot
// be distinguished from another one.
func TestLostReplyToExpiry(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	create(t, s, "a", "conditional", 10)
	ids := []string{place(t, s, 0, "a").ID, place(t, s, 0, "a").ID}
	proxy.DropReply("COMMIT")
	for _, e := range expire(t, s, ids...) {
		if e.Status != order.Expired {
			t.Errorf("%q", e.Status)
		}
	}
	balanced(t, s, "a", 0, 0)

	o := place(t, s, time.Hour, "a")
	proxy.DropReply("COMMIT")
	if _, _, err := s.Extend(t.Context(), order.Target{ID: o.ID}, time.Minute, 4*time.Hour); !errors.Is(err, order.ErrOutcomeUnknown) {
		t.Errorf("extend: %v, want ErrOutcomeUnknown", err)
	}
	if stored, err := s.Order(t.Context(), o.ID, ""); err != nil || stored.ExpiresAt.Sub(o.ExpiresAt) != time.Minute {
		t.Errorf("extended by %v, %v", stored.ExpiresAt.Sub(o.ExpiresAt), err)
	}
	if n := proxy.Dropped(); n != 2 {
		t.Fatalf("%d replies were dropped, want 2", n)
	}
}
