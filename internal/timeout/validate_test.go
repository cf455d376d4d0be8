package timeout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

func TestInvalidChangesNothing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cases := map[string]timeout.Timer{
		"no kind":       {ID: "a", Due: now},
		"long kind":     {Kind: strings.Repeat("k", 33), ID: "a", Due: now},
		"odd kind":      {Kind: "order expire", ID: "a", Due: now},
		"brace in kind": {Kind: "order{1}", ID: "a", Due: now},
		"no id":         {Kind: kind, Due: now},
		"long id":       {Kind: kind, ID: strings.Repeat("i", 65), Due: now},
		"space in id":   {Kind: kind, ID: "a b", Due: now},
		"no ASCII":      {Kind: kind, ID: "ä", Due: now},
		"control":       {Kind: kind, ID: "a\x00", Due: now},
		"no due":        {Kind: kind, ID: "a"},
		"before 1970":   {Kind: kind, ID: "a", Due: time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)},
		"in 11 years":   {Kind: kind, ID: "a", Due: now.AddDate(11, 0, 0)},
	}
	for name, timer := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memConfig)
			q := r.queue(timeout.Config{})
			_, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "good", Due: now}, timer)
			if !errors.Is(err, timeout.ErrInvalid) || !strings.Contains(err.Error(), "give ") {
				t.Errorf("Schedule = %v, want ErrInvalid with advice", err)
			}
			if n := r.store.open(); n != 0 {
				t.Errorf("%d timers are stored", n)
			}
		})
	}
}

func TestHandleRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, memConfig)
	q := r.queue(timeout.Config{})
	h := newBook().handle
	for name, err := range map[string]error{
		"kind":     q.Handle("", h, timeout.Options{}),
		"handler":  q.Handle(kind, nil, timeout.Options{}),
		"batch":    q.Handle(kind, h, timeout.Options{Batch: 1001}),
		"poll":     q.Handle(kind, h, timeout.Options{Poll: -time.Millisecond}),
		"negative": q.Handle(kind, h, timeout.Options{Attempts: -1}),
	} {
		if !errors.Is(err, timeout.ErrInvalid) {
			t.Errorf("%s: Handle = %v, want ErrInvalid", name, err)
		}
	}
	if err := q.Handle(kind, h, timeout.Options{}); err != nil {
		t.Errorf("Handle = %v", err)
	}
	if err := q.Handle(kind, h, timeout.Options{}); !errors.Is(err, timeout.ErrInvalid) {
		t.Errorf("a second Handle = %v, want ErrInvalid", err)
	}
	if _, err := timeout.New(r.store, r.mem, timeout.Config{Partition: "{}"}); !errors.Is(err, timeout.ErrInvalid) {
		t.Errorf("New = %v, want ErrInvalid", err)
	}
}
