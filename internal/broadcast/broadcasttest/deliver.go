package broadcasttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/broadcast"
)

// everyInstanceHears has each of three buses speak; its own subscriptions hear it as
// the others do.
func everyInstanceHears(t testing.TB, h Harness) {
	r := open(t, h, 3, 0)
	var readers []reader
	for i := range r.buses {
		readers = append(readers, r.subscribe(i, "*"), r.subscribe(i, "news"))
	}
	for i := range r.buses {
		payload := strconv.Itoa(i)
		r.publish(i, "news", payload)
		for _, rd := range readers {
			if m := rd.message(); m.Payload != payload || m.Topic != "news" {
				t.Errorf("got %+v, want %s of news", m, payload)
			}
		}
	}
}

// orderPerOrigin has all buses speak at the same time, on several topics each. Nothing
// fails, so nothing is missing.
func orderPerOrigin(t testing.TB, h Harness) {
	const n = 500
	r := open(t, h, 3, 4*n)
	var readers []reader
	for i := range r.buses {
		readers = append(readers, r.subscribe(i, "*"))
	}
	var wg sync.WaitGroup
	for _, b := range r.buses {
		wg.Go(func() {
			for i := range n {
				if err := b.Publish("topic."+strconv.Itoa(i%3), strconv.Itoa(i+1)); err != nil {
					t.Errorf("Publish = %v", err)
				}
			}
		})
	}
	wg.Wait()
	for _, rd := range readers {
		last := map[string]uint64{}
		for range n * len(r.buses) {
			m := rd.message()
			if last[m.ID.Origin]++; m.ID.Seq != last[m.ID.Origin] || m.Payload != strconv.FormatUint(m.ID.Seq, 10) {
				t.Fatalf("%v with %q follows number %d", m.ID, m.Payload, last[m.ID.Origin]-1)
			}
		}
	}
}

func topicsAreApart(t testing.TB, h Harness) {
	r := open(t, h, 2, 0)
	a, b, both := r.subscribe(0, "a"), r.subscribe(0, "b"), r.subscribe(0, "a", "b")
	for i, topic := range []string{"a", "c", "b", "a.b", "a", "B"} {
		r.publish(1, topic, strconv.Itoa(i))
	}
	r.publish(1, "a", "end")
	r.publish(1, "b", "end")
	a.expect("0", "4", "end")
	b.expect("2", "end")
	both.expect("0", "2", "4", "end", "end")
}

func patternsMatch(t testing.TB, h Harness) {
	topics := []string{"stock", "stock.lamp", "stock.lamp.eu", "stocks.lamp", "order.stock.lamp", "stock.", ".", "a:b/c?d"}
	wants := map[string][]string{
		"*":            topics,
		"stock":        {"stock"},
		"stock.lamp":   {"stock.lamp"},
		"stock.*":      {"stock.lamp", "stock.lamp.eu", "stock."},
		"stock.lamp.*": {"stock.lamp.eu"},
		"order.*":      {"order.stock.lamp"},
		".*":           {"."},
		"a:b/c?d":      {"a:b/c?d"},
		"lamp":         nil,
	}
	r := open(t, h, 1, 0)
	readers := map[string]reader{}
	for pattern := range wants {
		readers[pattern] = r.subscribe(0, pattern, "end")
	}
	for _, topic := range append(topics, "end") {
		r.publish(0, topic, "")
	}
	for pattern, want := range wants {
		var got []string
		for {
			topic := readers[pattern].message().Topic
			if topic == "end" {
				break
			}
			got = append(got, topic)
		}
		if !slices.Equal(got, want) && pattern != "*" {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

func oncePerSubscription(t testing.TB, h Harness) {
	r := open(t, h, 1, 0)
	rd := r.subscribe(0, "*", "a.b.c", "a.*", "a.b.*", "a.b.c")
	r.publish(0, "a.b.c", "1")
	r.publish(0, "a.b.c", "2")
	rd.expect("1", "2")
}

func payloadsArriveAsTheyAre(t testing.TB, h Harness) {
	r := open(t, h, 2, 0)
	rd := r.subscribe(1, "*")
	payloads := []string{
		"", " ", "two words", " leading", "trailing ", "a\r\nb\x00c\xff", `{"sku":"lamp","on_hand":3}`, "1m x y 1 z", "ä€😀",
		strings.Repeat("x", broadcast.MaxPayload),
	}
	topics := []string{"t", "a.b.c", "!~{}[]()\"'", strings.Repeat("t", 200)}
	for _, topic := range topics {
		for _, payload := range payloads {
			r.publish(0, topic, payload)
			if m := rd.message(); m.Topic != topic || m.Payload != payload {
				t.Errorf("got %.100q on %.100q, want %.100q on %.100q", m.Payload, m.Topic, payload, topic)
			}
		}
	}
}

// idsIdentify lets an instance come back under its name.
func idsIdentify(t testing.TB, h Harness) {
	r := open(t, h, 2, 0)
	rd, own := r.subscribe(0, "*"), r.subscribe(1, "*")
	seen := map[broadcast.ID]bool{}
	for n := uint64(1); n <= 3; n++ {
		for i := range r.buses {
			r.publish(i, "t", "")
			m := rd.message()
			if m.ID.Seq != n || m.ID.Epoch == "" || m.ID.Origin == "" || seen[m.ID] {
				t.Errorf("%+v is number %d of its origin", m.ID, n)
			}
			if same := own.message(); same.ID != m.ID {
				t.Errorf("one message is %v and %v", m.ID, same.ID)
			}
			if parsed, err := broadcast.ParseID(m.ID.String()); parsed != m.ID || err != nil {
				t.Errorf("ParseID(%s) = %+v, %v", m.ID, parsed, err)
			}
			seen[m.ID] = true
		}
	}
}

func invalidIsRefused(t testing.TB, h Harness) {
	r := open(t, h, 1, 0)
	for _, topic := range []string{"", " ", "a b", "a*", "*", "a\n", "ä", "\x00", strings.Repeat("t", 201)} {
		wantErr(t, r.buses[0].Publish(topic, "x"), broadcast.ErrInvalid)
	}
	wantErr(t, r.buses[0].Publish("t", strings.Repeat("x", broadcast.MaxPayload+1)), broadcast.ErrInvalid)
	for _, patterns := range [][]string{nil, {""}, {"a", ""}, {"a*"}, {"**"}, {"*.a"}, {"a.*.b"}, {"a b"}, {"ä"}, {strings.Repeat("t", 201)}} {
		s, err := r.buses[0].Subscribe(patterns...)
		if wantErr(t, err, broadcast.ErrInvalid); s != nil {
			t.Errorf("Subscribe(%q) returns a subscription beside its error", patterns)
		}
	}
	// What was refused has no number.
	rd := r.subscribe(0, "*")
	r.publish(0, "t", "x")
	if m := rd.message(); m.ID.Seq != 1 {
		t.Errorf("the first message has the number %d", m.ID.Seq)
	}
	if s := r.buses[0].Stats(); s.Published != 1 || s.Subscriptions != 1 || s.Received != 1 {
		t.Errorf("%+v, want one message and one subscription", s)
	}
}

// connectedComesFirst subscribes while others speak: from the first event on all is heard.
func connectedComesFirst(t testing.TB, h Harness) {
	r := open(t, h, 2, 4096)
	for round := range 20 {
		topic := fmt.Sprint("t", round)
		speaking := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 40 {
				if i == 10 {
					close(speaking)
				}
				if err := r.buses[1].Publish(topic, "before"); err != nil {
					t.Errorf("Publish = %v", err)
				}
			}
		})
		<-speaking
		rd := r.subscribe(0, topic)
		wg.Wait()
		r.publish(0, topic, "after")
		r.publish(1, topic, "after")
		last := uint64(0)
		for after := 0; after < 2; {
			m := rd.message()
			switch {
			case m.Payload == "after":
				after++
			case last != 0 && m.ID.Seq != last+1:
				t.Fatalf("%v follows %d", m.ID, last)
			default:
				last = m.ID.Seq
			}
		}
		rd.Close()
	}
}

// nothingBeforeRun subscribes at a bus that does not run yet.
func nothingBeforeRun(t testing.TB, h Harness) {
	r := open(t, h, 1, 0)
	late := h.Open(t, 1, 0)[0]
	s, err := late.Subscribe("*")
	if err != nil || s.Len() != 0 || late.Stats().Live {
		t.Fatalf("Subscribe = %v, with %d events and %+v before Run", err, s.Len(), late.Stats())
	}
	running(t, late)
	rd := reader{s, r}
	if m := rd.missed(); m.Reason != broadcast.Connected {
		t.Errorf("the first event is %+v, want Connected", m)
	}
	if err := late.Publish("t", "x"); err != nil {
		t.Fatal(err)
	}
	rd.expect("x")
	if err := late.Run(r.ctx); err == nil {
		t.Error("Run runs twice")
	}
}
