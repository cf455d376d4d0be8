package broadcast_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/broadcasttest"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func fanout(t *testing.T, room int) *broadcast.Fanout {
	t.Helper()
	f, err := broadcast.NewFanout(room)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func subscribe(t *testing.T, f *broadcast.Fanout, patterns ...string) *broadcast.Subscription {
	t.Helper()
	s, err := f.Subscribe(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Notices that nobody has read become one, which says what has to be known of all.
func TestNoticesAreJoined(t *testing.T) {
	t.Parallel()
	const roomy, full = 8, 2
	for _, c := range []struct {
		room  int
		steps string
		want  string
	}{
		{roomy, "down up", "connected 0"},
		{roomy, "down", "disconnected 0"},
		{roomy, "a2 a3", "gap a 5"},
		{roomy, "a2 b3", "gap 5"},
		{roomy, "a2 a0", "gap a 0"},
		{roomy, "a2 down", "disconnected 0"},
		{roomy, "down up a2", "connected 0"},
		{roomy, "a2 say a1", "gap a 2, message, gap a 1"},
		{roomy, "down up say down up", "connected 0, message, connected 0"},
		{full, "say say say say", "message, message, overflow 2"},
		{full, "say say a3 say", "message, message, overflow 4"},
		{full, "say say say a3", "message, message, overflow 4"},
		{full, "say say a0 say", "message, message, overflow 0"},
		{full, "say say a1 a2", "message, message, gap a 3"},
		{full, "say say say down", "message, message, disconnected 0"},
		{full, "say say say down up say", "message, message, connected 0"},
		{full, "say a1 a2 say", "message, gap a 3, overflow 1"},
	} {
		f := fanout(t, c.room)
		f.Up()
		s := subscribe(t, f, "*")
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for step := range strings.FieldsSeq(c.steps) {
			switch step {
			case "up":
				f.Up()
			case "down":
				f.Down()
			case "say":
				f.Deliver(broadcast.Message{Topic: "t"})
			default:
				f.Miss(broadcast.Missed{Reason: broadcast.Gap, Origin: step[:1], Count: uint64(step[1] - '0')})
			}
		}
		var got []string
		for s.Len() > 0 {
			e, err := s.Next(t.Context())
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Missed == nil:
				got = append(got, "message")
			default:
				got = append(got, strings.Join(strings.Fields(fmt.Sprint(e.Missed.Reason, " ", e.Missed.Origin, " ", e.Missed.Count)), " "))
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %s, want %s", c.steps, text, c.want)
		}
	}
}

// Who subscribes while nothing arrives is not told of that; the first word is that
// messages arrive.
func TestSubscribeWhileDown(t *testing.T) {
	t.Parallel()
	f := fanout(t, 0)
	s := subscribe(t, f, "*")
	f.Down()
	if s.Len() != 0 {
		t.Errorf("%d events before messages arrive", s.Len())
	}
	f.Up()
	if e, err := s.Next(t.Context()); err != nil || e.Missed == nil || e.Missed.Reason != broadcast.Connected {
		t.Errorf("got %+v, %v", e, err)
	}
	if n := f.Stats().Losses; n != 0 {
		t.Errorf("%d losses", n)
	}
}

// Who never reads keeps as many messages alive as its queue has room for, and who closes
// keeps none.
func TestMemoryIsBounded(t *testing.T) {
	const room, subscriptions = 64, 100
	f := fanout(t, room)
	f.Up()
	var all []*broadcast.Subscription
	for range subscriptions {
		all = append(all, subscribe(t, f, "t.*", "*"))
	}
	before := heap()
	for range 5000 { // 40 MB
		f.Deliver(broadcast.Message{Topic: "t.x", Payload: strings.Repeat("x", broadcast.MaxPayload)})
	}
	const event = 128 // bytes, rounded up
	if grown, most := heap()-before, room*(broadcast.MaxPayload+subscriptions*event)*3/2; grown > most {
		t.Errorf("%d KB are kept, want at most %d KB", grown>>10, most>>10)
	}
	for _, s := range all {
		s.Close()
	}
	if grown := heap() - before; grown > 200<<10 {
		t.Errorf("%d KB are kept after all have closed", grown>>10)
	}
	runtime.KeepAlive(all)
	runtime.KeepAlive(f)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]broadcast.ID{
		"shop-1:K7:42":             {Origin: "shop-1", Epoch: "K7", Seq: 42},
		"host:8080:K7:1":           {Origin: "host:8080", Epoch: "K7", Seq: 1},
		"a:b:18446744073709551615": {Origin: "a", Epoch: "b", Seq: 1<<64 - 1},
	} {
		if got, err := broadcast.ParseID(text); err != nil || got != want || got.String() != text {
			t.Errorf("ParseID(%q) = %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ":", "::", "a:b", "a:b:", "a:b:-1", "a:b:+1", "a:b:01", "a:b:x", "a::1", ":b:1", "a b:c:1", "a:b:1 ", "ä:b:1",
		"a:b:18446744073709551616", strings.Repeat("a", 65) + ":b:1",
	} {
		if got, err := broadcast.ParseID(text); !errors.Is(err, broadcast.ErrInvalid) {
			t.Errorf("ParseID(%q) = %+v, %v; want ErrInvalid", text, got, err)
		}
	}
}

// What the documentation says is shown by a case or a test is shown by one that exists.
func TestDocumentationNamesItsTests(t *testing.T) {
	t.Parallel()
	known := broadcasttest.Names()
	form := regexp.MustCompile(`(?m)^func Test(\w+)\(t \*testing\.T\)`)
	files, err := filepath.Glob("redisbus/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "broadcast_test.go") {
		for _, m := range form.FindAllStringSubmatch(read(t, file), -1) {
			known = append(known, m[1])
		}
	}
	names := regexp.MustCompile(`\(((?:[A-Z]\w+[a-z]\w*)(?:,\s+(?://\s+)?[A-Z]\w+)*)\)`)
	n := 0
	for _, file := range []string{"doc.go", "redisbus/doc.go"} {
		for _, m := range names.FindAllStringSubmatch(read(t, file), -1) {
			for name := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return strings.ContainsRune(", \t\n/", r) }) {
				n++
				if !slices.Contains(known, name) {
					t.Errorf("%s names %s, which is no case and no test", file, name)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d names are found in the documentation, which are too few", n)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
