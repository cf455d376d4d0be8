package redisbus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
)

// What a process finds out about another one, by fake time: each step is a frame with the
// second in which it arrives, or a look for those who are silent.
func TestOrigins(t *testing.T) {
	t.Parallel()
	const limit = 12 * time.Second
	for name, steps := range map[string][]string{
		"from the start":  {"0 b0", "1 m1: fresh", "2 m2: fresh", "3 b2", "4 x2", "60 look"},
		"lost in between": {"0 b0", "1 m1: fresh", "2 m4: gap 2, fresh", "3 m4", "3 m3", "3 b4"},
		"lost at the end": {"0 b0", "1 m1: fresh", "2 b3: gap 2", "3 m2", "4 m4: fresh"},
		"lost at the bye": {"0 b0", "1 m1: fresh", "2 x3: gap 2", "60 look"},
		"lost first":      {"0 m2: gap 0, fresh"},
		"known too late":  {"0 b7: gap 0", "1 m8: fresh"},
		"nothing said":    {"0 b0", "1 x0", "60 look"},
		"stale beat":      {"0 b0", "1 m1: fresh", "1 m2: fresh", "2 b1", "3 m3: fresh"},
		"dies":            {"0 b0", "1 m1: fresh", "13 look", "17 look: silent", "30 look", "60 look"},
		"stalls":          {"0 b0", "1 m1: fresh", "20 look: silent", "21 m2: fresh", "22 look", "40 look: silent"},
		"stalls and lost": {"0 b0", "1 m1: fresh", "20 look: silent", "21 m3: gap 1, fresh"},
		"we were away":    {"0 b0", "1 m1: fresh", "50 resume", "55 look", "70 look: silent"},
		"forgotten":       {"0 b0", "1 m1: fresh", "20 look: silent", "3000 m1", "3700 look", "3800 m1: fresh"},
		"comes back":      {"0 b0", "1 x0", "2 b0", "20 look: silent"},
	} {
		o := origins{by: map[origin]*last{}}
		start := time.Now()
		for _, step := range steps {
			var second, seq int
			var what string
			if _, err := fmt.Sscan(step, &second, &what); err != nil {
				t.Fatal(err)
			}
			now := start.Add(time.Duration(second) * time.Second)
			var got []string
			switch what = strings.TrimSuffix(what, ":"); what {
			case "look":
				for range o.silent(now, limit) {
					got = append(got, "silent")
				}
			case "resume":
				o.resume(now)
			default:
				if _, err := fmt.Sscan(what[1:], &seq); err != nil {
					t.Fatal(err)
				}
				f := frame{kind("1" + what[:1]), broadcast.Message{ID: broadcast.ID{Origin: "a", Epoch: "E", Seq: uint64(seq)}, Topic: "t"}}
				fresh, lost := o.follow(f, now)
				if lost != nil {
					got = append(got, fmt.Sprint("gap ", lost.Count))
				}
				if fresh {
					got = append(got, "fresh")
				}
			}
			_, want, _ := strings.Cut(step, ": ")
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("%s: %q: got %q", name, step, text)
			}
		}
	}
}

// Each origin is told of by its name.
func TestSilentOriginsAreNamed(t *testing.T) {
	t.Parallel()
	o, now := origins{by: map[origin]*last{}}, time.Now()
	for _, name := range []string{"a", "b", "c"} {
		o.follow(frame{beat, broadcast.Message{ID: broadcast.ID{Origin: name, Epoch: "E"}}}, now)
	}
	o.follow(frame{beat, broadcast.Message{ID: broadcast.ID{Origin: "b", Epoch: "E"}}}, now.Add(9*time.Second))
	names := o.silent(now.Add(13*time.Second), 12*time.Second)
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("silent are %q, want a and c", names)
	}
}

// FuzzParse: whatever arrives, it is refused or says the same again.
func FuzzParse(f *testing.F) {
	f.Add("1m a E 1 t x y")
	f.Add("1b a E 0")
	f.Add("1x a E 18446744073709551615")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parse(text)
		if !ok {
			return
		}
		if again, ok := parse(got.String()); !ok || again != got {
			t.Errorf("%q is %+v, and that is %+v, %v", text, got, again, ok)
		}
	})
}
