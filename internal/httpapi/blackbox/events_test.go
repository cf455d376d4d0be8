package blackbox_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// heartbeat is how often streams of a station show that they live.
const heartbeat = 50 * time.Millisecond

const (
	firstOrder  = "00000000-0000-7000-8000-000000000001"
	secondOrder = "00000000-0000-7000-8000-000000000002"
	lastOrder   = "00000000-0000-7000-8000-000000000009"
)

// TestStream lasts far longer than a request may, on which nothing happens but heartbeats, and then continues after the last id.
func TestStream(t *testing.T) {
	t.Parallel()
	s := newStationWith(t, nil, events.FeedConfig{}, heartbeat, time.Second)
	client := streamClient(t)
	answer := s.open(t, client, "", "", "")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Instance-Id": "i1", "Content-Encoding": "",
	} {
		if got := answer.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	beats := 0
	var retry time.Duration
	for m, err := range events.Messages(answer.body) {
		if err != nil {
			t.Fatalf("after %d heartbeats: %v", beats, err)
		}
		if m.Data == "" && m.ID != "" {
			beats++
		}
		retry = m.Retry
		if beats == 40 {
			break
		}
	}
	if retry < time.Second || retry > 3*time.Second {
		t.Errorf("come back after %v", retry)
	}

	s.Order(liveOrder(firstOrder, "c1", "a"))
	s.Held("a", "redis", 7, time.Now(), nil)
	s.Member(events.Member{Name: "i2", Address: "127.0.0.1:1", Role: "shop"})
	s.Leader(events.Leader{Name: "i2", Term: 3})
	s.Timers("order.expire", "committed", 1)
	s.Order(liveOrder(lastOrder, "c1", "a"))
	messages := upTo(t, answer.body, lastOrder)
	schema := s.shop.spec.Paths.Value("/api/v1/events").Get.Responses.Value("200").Value.Content["text/event-stream"].Schema.Value
	for _, m := range messages {
		var v any
		if err := json.Unmarshal([]byte(m.Data), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.VisitJSON(v); err != nil {
			t.Errorf("%s: %v", m.Data, err)
		}
	}
	if got := kinds(t, messages); got[0] != firstOrder || !slices.Contains(got, "leader") || !slices.Contains(got, "member") {
		t.Errorf("%q", got)
	}
	again := s.open(t, client, "", "", messages[0].ID)
	if got := kinds(t, upTo(t, again.body, lastOrder)); got[0] == firstOrder || slices.Contains(got, "reset") || len(got) != len(messages)-1 {
		t.Errorf("after %q: %q", firstOrder, got)
	}
	lost := s.open(t, client, "", "?types=order", "what is this")
	s.Order(liveOrder(lastOrder, "c1"))
	if got := kinds(t, upTo(t, lost.body, lastOrder)); !slices.Equal(got, []string{"reset", lastOrder}) {
		t.Errorf("after an id that is none: %q", got)
	}
}

// TestStreamIsNotBuffered on its way: what there is comes at once.
func TestStreamIsNotBuffered(t *testing.T) {
	t.Parallel()
	s := newStationWith(t, nil, events.FeedConfig{}, time.Hour, time.Hour)
	answer := s.open(t, streamClient(t), "", "", "")
	late := time.AfterFunc(time.Minute, func() { _ = answer.body.Close() })
	defer late.Stop()
	for n, id := range []string{firstOrder, secondOrder, lastOrder} {
		s.Order(liveOrder(id, "c1"))
		if got := kinds(t, upTo(t, answer.body, id)); len(got) != max(1, 2-n) || got[len(got)-1] != id {
			t.Fatalf("%q", got)
		}
	}
}

// TestStreamsOfCustomers have their own orders, and the levels of SKUs if they ask for them.
func TestStreamsOfCustomers(t *testing.T) {
	t.Parallel()
	s := newStation(t, keys, events.FeedConfig{})
	client := streamClient(t)
	streams := map[string]opened{}
	for _, key := range []string{"owner", "other", "admin", "both"} {
		for _, query := range []string{"", "?types=order", "?order=" + firstOrder, "?sku=a", "?types=stock", "?types=order,stock&sku=a", "?types=stock&order=" + firstOrder} {
			streams[key+" "+query] = s.open(t, client, key, query, "")
		}
	}
	s.unstocked.Store(true) // the levels that orders change are read once or twice
	s.Order(liveOrder(firstOrder, "c1", "a"))
	s.Leader(events.Leader{Name: "i1", Term: 3})
	s.Order(liveOrder(secondOrder, "c2", "a", "b"))
	testbedtest.Eventually(t, "these reads", func() bool {
		_, last := s.asked.Load("b")
		return last
	})
	s.unstocked.Store(false)
	s.Stock("a", "b")
	testbedtest.Eventually(t, "all is heard", func() bool { return s.feed.Stats().Received == 5 })
	s.feed.Close()
	both := []string{firstOrder, secondOrder}
	for name, want := range map[string][]string{
		"owner ": {firstOrder}, "owner ?types=order": {firstOrder}, "owner ?order=" + firstOrder: {firstOrder}, "owner ?sku=a": {firstOrder},
		"other ": {secondOrder}, "other ?types=order": {secondOrder}, "other ?order=" + firstOrder: nil, "other ?sku=a": {secondOrder},
		"owner ?types=stock": {"stock", "stock"}, "owner ?types=order,stock&sku=a": {firstOrder, "stock"}, "owner ?types=stock&order=" + firstOrder: nil,
		"other ?types=stock": {"stock", "stock"}, "other ?types=order,stock&sku=a": {secondOrder, "stock"},
		"admin ?types=stock": {"stock", "stock"}, "admin ?types=order,stock&sku=a": {firstOrder, secondOrder, "stock"},
		"admin ": {firstOrder, "leader", secondOrder, "stock", "stock"}, "admin ?types=order": both, "admin ?order=" + firstOrder: {firstOrder}, "admin ?sku=a": {firstOrder, secondOrder, "stock"},
		"both ": {firstOrder, "leader", secondOrder, "stock", "stock"}, "both ?types=order": both, "both ?order=" + firstOrder: {firstOrder}, "both ?sku=a": {firstOrder, secondOrder, "stock"},
	} {
		var all []events.Message
		for m, err := range events.Messages(streams[name].body) {
			if err != nil {
				break
			}
			if m.Data != "" {
				all = append(all, m)
			}
		}
		if got := kinds(t, all); !slices.Equal(got, append([]string{"reset"}, want...)) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, query := range []string{"?types=member", "?types=order,stock,lock", "?types=leader&order=" + firstOrder} {
		status, p := s.shop.as(t, "owner", http.MethodGet, "/api/v1/events"+query, "")
		if wantType(t, p, "forbidden"); status != http.StatusForbidden {
			t.Errorf("%s: %d", query, status)
		}
	}
}

// TestRevokedKeyEndsItsStreams also while events come all the time. While nobody can be asked they continue.
func TestRevokedKeyEndsItsStreams(t *testing.T) {
	t.Parallel()
	var answers atomic.Value
	answers.Store(identity.ErrUnavailable)
	s := newStation(t, revocable{&answers, new(sync.Map)}, events.FeedConfig{})
	client := streamClient(t)
	streams := []opened{s.open(t, client, "owner", "", ""), s.open(t, client, "admin", "", "")}
	busy, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for busy.Err() == nil {
			s.Leader(events.Leader{Name: "i1", Term: 3})
			<-time.After(heartbeat / 10)
		}
	}()
	began := time.Now()
	for m, err := range events.Messages(streams[1].body) {
		if err != nil {
			t.Fatalf("the stream ended while nobody could be asked: %v", err)
		}
		if m.Kind == "leader" && time.Since(began) > 10*heartbeat {
			break
		}
	}
	for _, answer := range streams {
		go io.Copy(io.Discard, answer.body) // they are not cut off because they do not read
	}
	answers.Store(identity.ErrUnauthenticated)
	testbedtest.Eventually(t, "the streams have ended", func() bool { return s.feed.Stats().Listeners == 0 })
}

// revocable knows a key until it has an error, for all that ask again.
type revocable struct {
	err  *atomic.Value
	seen *sync.Map
}

func (revocable) Watch(string, func()) func() { return func() {} }

func (r revocable) Authenticate(ctx context.Context, text string) (identity.Caller, error) {
	if _, ok := r.seen.LoadOrStore(text, true); ok {
		err, _ := r.err.Load().(error)
		return identity.Caller{}, err
	}
	return keys.Authenticate(ctx, text)
}

// TestStreamCap refuses those for whom there is no room, and names the delay for a retry.
func TestStreamCap(t *testing.T) {
	t.Parallel()
	s := newStation(t, nil, events.FeedConfig{Listeners: 2})
	client := streamClient(t)
	first := s.open(t, client, "", "", "")
	s.open(t, client, "", "", "")
	wantType(t, s.shop.must(t, http.StatusServiceUnavailable, http.MethodGet, "/api/v1/events", ""), "too-many-listeners")
	_ = first.body.Close()
	testbedtest.Eventually(t, "its place is free", func() bool { return s.feed.Stats().Listeners == 1 })
	s.open(t, client, "", "", "")
	s.feed.Close()
	wantType(t, s.shop.must(t, http.StatusServiceUnavailable, http.MethodGet, "/api/v1/events", ""), "draining")
}
