package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

const timers = "/api/v1/timers"

// newAdmin returns the handler of an admin, asked as localhost.
func newAdmin(tb testing.TB, q httpapi.Timers) *shop {
	tb.Helper()
	return newAdminWith(tb, httpapi.Config{Timers: q})
}

func newAdminWith(tb testing.TB, c httpapi.Config) *shop {
	tb.Helper()
	c.Instance = "i1"
	c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprintln(w, "# TYPE shop_timers_dead gauge")
	})
	h, err := httpapi.NewAdmin(c)
	if err != nil {
		tb.Fatal(err)
	}
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "example.com" { // as httptest has it
			r.Host = "localhost"
		}
		h.ServeHTTP(w, r)
	})
	return &shop{Handler: local, spec: specified(tb, onAdminListener)}
}

// newQueue returns a queue on a database of its own, which runs once the returned function is called.
func newQueue(tb testing.TB) (q *timeout.Queue, run func()) {
	tb.Helper()
	rows, err := newStore(tb).Timers()
	if err != nil {
		tb.Fatal(err)
	}
	if q, err = timeout.New(rows, memindex.New(memindex.Config{}), timeout.Config{}); err != nil {
		tb.Fatal(err)
	}
	return q, func() {
		ctx, stop := context.WithCancel(tb.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Run(ctx) }()
		tb.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				tb.Error(err)
			}
		})
	}
}

// schedule stores timers of the kind k.
func schedule(tb testing.TB, q *timeout.Queue, due time.Time, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		push, err := q.Schedule(tb.Context(), nil, timeout.Timer{Kind: "k", ID: id, Due: due})
		if err != nil {
			tb.Fatal(err)
		}
		push()
	}
}

func ids(page map[string]any) (all []string) {
	list, _ := page["timers"].([]any)
	for _, t := range list {
		timer, _ := t.(map[string]any)
		all = append(all, fmt.Sprint(timer["kind"], "/", timer["id"]))
	}
	return all
}

// TestDeadTimerIsRedriven follows one from its burial to its firing.
func TestDeadTimerIsRedriven(t *testing.T) {
	t.Parallel()
	q, run := newQueue(t)
	healed := make(chan struct{})
	fired := make(chan string, 10)
	err := q.Handle("k", func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		outcomes := make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			select {
			case <-healed:
				outcomes[i] = timeout.Done()
				fired <- f.ID
			default:
				outcomes[i] = timeout.Retry(0, errors.New("the warehouse is on fire"))
			}
		}
		return outcomes, nil
	}, timeout.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	run()
	s := newAdmin(t, q)
	schedule(t, q, time.Now(), "a", "b", "c")
	dead := func() map[string]any { return s.must(t, 200, "GET", timers+"?kind=k&state=DEAD", "") }
	testbedtest.Eventually(t, "three dead timers", func() bool { return len(ids(dead())) == 3 })
	got := s.must(t, 200, "GET", timers+"/k/a", "")
	if got["state"] != "DEAD" || got["last_error"] != "after 1 attempts: the warehouse is on fire" || got["attempt"] != 1.0 || got["partition"] != "base" {
		t.Errorf("got %v", got)
	}
	close(healed)
	if got := s.must(t, 200, "POST", timers+"/k/redrive?id=a", ""); got["timers"] != 1.0 {
		t.Errorf("redriven: %v", got)
	}
	if id := <-fired; id != "a" {
		t.Errorf("%q fired", id)
	}
	s.must(t, 200, "POST", timers+"/k/b/fire", "")
	if id := <-fired; id != "b" {
		t.Errorf("%q fired", id)
	}
	if got := s.must(t, 200, "POST", timers+"/k/redrive", ""); got["timers"] != 1.0 {
		t.Errorf("redriven: %v", got)
	}
	<-fired
	testbedtest.Eventually(t, "no timer", func() bool { return len(ids(s.must(t, 200, "GET", timers, ""))) == 0 })
	s.must(t, 404, "GET", timers+"/k/a", "")
	s.must(t, 404, "POST", timers+"/k/a/fire", "")
	s.must(t, 404, "POST", timers+"/k/redrive?id=a", "")
	if got := s.must(t, 200, "POST", timers+"/k/redrive", ""); got["timers"] != 0.0 {
		t.Errorf("redriven: %v", got)
	}
}

// TestPausedKindWaits until it is resumed, whoever paused it.
func TestPausedKindWaits(t *testing.T) {
	t.Parallel()
	q, run := newQueue(t)
	fired := make(chan string, 10)
	err := q.Handle("k", func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		fired <- batch[0].ID
		return []timeout.Outcome{timeout.Done()}, nil
	}, timeout.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := newAdmin(t, q)
	if got := s.must(t, 200, "POST", timers+"/k/pause", ""); got["paused"] != true {
		t.Errorf("got %v", got)
	}
	run()
	schedule(t, q, time.Now(), "a")
	select {
	case id := <-fired:
		t.Errorf("%s fired while its kind was paused", id)
	case <-time.After(300 * time.Millisecond):
	}
	s.must(t, 200, "POST", timers+"/k/resume", "")
	<-fired
	s.must(t, 404, "POST", timers+"/unknown/pause", "")
	s.must(t, 404, "POST", timers+"/unknown/redrive", "")
}

// TestPagesOfTimers show each one once, in order, whatever their ids look like.
func TestPagesOfTimers(t *testing.T) {
	t.Parallel()
	q, _ := newQueue(t)
	s := newAdmin(t, q)
	strange := []string{"a/b", "..", "%41", "a%2Fb", "?x=1#y", `"quoted"`, "~", "!", "100%", "redrive", strings.Repeat("z", 64)}
	at := time.Now().Add(time.Hour)
	schedule(t, q, at, strange...)
	schedule(t, q, at.Add(time.Second), "last")
	want := make([]string, len(strange))
	for i, id := range strange {
		want[i] = "k/" + id
	}
	slices.Sort(want)
	want = append(want, "k/last")
	for _, limit := range []int{1, 5, len(want), len(want) + 1} {
		var got []string
		query := url.Values{"limit": {fmt.Sprint(limit)}}
		for {
			page := s.must(t, 200, "GET", timers+"?"+query.Encode(), "")
			got = append(got, ids(page)...)
			next, more := page["next"].(string)
			if !more || len(got) > len(want) {
				break
			}
			query.Set("cursor", next)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d:\n%s", limit, diff)
		}
	}
	for _, id := range strange {
		if got := s.must(t, 200, "GET", timers+"/k/"+url.PathEscape(id), ""); got["id"] != id {
			t.Errorf("asked for %q, got %q", id, got["id"])
		}
		s.must(t, 200, "POST", timers+"/k/"+url.PathEscape(id)+"/fire", "")
	}
}
