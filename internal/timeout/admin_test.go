package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

func TestRedriveAndFireNowReopenDeadTimers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var healed atomic.Bool
		q, _ := r.start(timeout.Config{}, each(b, func(f timeout.Fired) timeout.Outcome {
			if !healed.Load() {
				return timeout.Retry(0, errors.New("hopeless"))
			}
			b.effect(f)
			return timeout.Done()
		}), timeout.Options{Attempts: 1})
		r.schedule(q, time.Now(), ids(2500)...)
		time.Sleep(time.Minute)
		stats, err := q.Stats(t.Context())
		if err != nil || len(stats) != 1 || stats[0].Dead != 2500 || stats[0].Open != 0 {
			t.Errorf("Stats = %+v, %v, want 2500 dead", stats, err)
		}
		healed.Store(true)
		if err := q.FireNow(t.Context(), kind, "o-00001"); err != nil {
			t.Errorf("FireNow = %v", err)
		}
		if n, err := q.Redrive(t.Context(), kind, "o-00002"); n != 1 || err != nil {
			t.Errorf("Redrive one = %d, %v", n, err)
		}
		time.Sleep(time.Second)
		if b.len() != 2 {
			t.Errorf("%d came back, want 2", b.len())
		}
		if n, err := q.Redrive(t.Context(), kind); n != 2498 || err != nil {
			t.Errorf("Redrive all = %d, %v", n, err)
		}
		time.Sleep(time.Second)
		b.once(t)
		r.drained()
		if err := q.FireNow(t.Context(), kind, "o-00001"); !errors.Is(err, timeout.ErrNotFound) {
			t.Errorf("FireNow of what is done = %v, want ErrNotFound", err)
		}
	})
}

func TestPauseHoldsAndResumeReleases(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Second)
		if err := q.Pause(t.Context(), kind); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the other instance reads it
		r.schedule(q, time.Now().Add(time.Second), ids(10)...)
		time.Sleep(time.Minute)
		if b.len() != 0 {
			t.Errorf("%d fired during the pause", b.len())
		}
		if err := q.Resume(t.Context(), kind); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		b.within(t, 10, time.Minute+2*time.Second)
		b.once(t)
	})
}

// hopelessStore has what is redriven die again at once.
type hopelessStore struct {
	*memStore
	redriven map[string]int
}

func (s hopelessStore) Redrive(ctx context.Context, kind string, ids []string) ([]timeout.Row, error) {
	rows, err := s.memStore.Redrive(ctx, kind, ids)
	again := make([]timeout.Later, len(rows))
	for i, r := range rows {
		if s.redriven[r.ID]++; s.redriven[r.ID] > 3 {
			return nil, fmt.Errorf("%s is redriven for the fourth time", r.ID)
		}
		again[i] = timeout.Later{ID: r.ID, Due: r.Due}
	}
	return rows, errors.Join(err, s.MarkDead(ctx, kind, again))
}

func TestRedriveEndsWhenTimersDieAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		store := hopelessStore{r.store, map[string]int{}}
		q, err := timeout.New(store, client{r.link, 1, "instance-1"}, timeout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		dead := ids(2500)
		r.schedule(q, time.Now(), append(dead, "open")...)
		var rows []timeout.Later
		for _, id := range dead {
			rows = append(rows, timeout.Later{ID: id, Due: time.Now()})
		}
		if err := store.MarkDead(t.Context(), kind, rows); err != nil {
			t.Fatal(err)
		}
		if n, err := q.Redrive(t.Context(), kind); n != len(dead) || err != nil {
			t.Errorf("Redrive = %d, %v, want %d", n, err, len(dead))
		}
		for _, id := range dead {
			if n := store.redriven[id]; n != 1 {
				t.Fatalf("%s was redriven %d times, want once", id, n)
			}
		}
	})
}
