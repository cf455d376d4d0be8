package broadcasttest

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
)

// Histories by hand: what is wrong with them is found. Bus 0 says a message in each of the
// seconds 1 to 6, on t; number 4 is on u.
func TestViolations(t *testing.T) {
	t.Parallel()
	notice := func(second int) heard {
		return heard{at: time.Duration(second) * time.Second, missed: broadcast.Connected}
	}
	get := func(number uint64) heard {
		topic := "t"
		if number == 4 {
			topic = "u"
		}
		return heard{at: time.Duration(number) * time.Second, number: number, topic: topic}
	}
	for name, c := range map[string]struct {
		pattern string
		heard   []heard
		want    string // part of the violation; empty if there is none
	}{
		"all":               {"*", []heard{notice(0), get(1), get(2), get(3), get(4), get(5)}, ""},
		"those of a topic":  {"t", []heard{notice(0), get(1), get(2), get(3), get(5)}, ""},
		"no first notice":   {"*", []heard{get(1)}, "no notice"},
		"nothing":           {"*", nil, "no notice"},
		"late":              {"*", []heard{notice(3), get(4), get(5)}, ""},
		"gap":               {"*", []heard{notice(0), get(1), get(3)}, "number 2 of bus 0"},
		"gap at the start":  {"*", []heard{notice(0), get(2)}, "number 1 of bus 0"},
		"gap, told":         {"*", []heard{notice(0), get(1), notice(3), get(3)}, ""},
		"told too early":    {"*", []heard{notice(0), get(1), notice(1), get(3)}, "number 2 of bus 0"},
		"told afterwards":   {"*", []heard{notice(0), get(1), get(3), notice(4)}, "number 2 of bus 0"},
		"told of one alone": {"*", []heard{notice(0), get(1), notice(2), get(4)}, "number 3 of bus 0"},
		"told elsewhere":    {"*", []heard{notice(0), get(1), notice(5), get(3), get(5)}, "number 4 of bus 0"},
		"gap of a topic":    {"u", []heard{notice(0), get(4)}, ""},
		"order":             {"*", []heard{notice(0), get(1), notice(6), get(3), get(2)}, "number 2 of bus 0 follows"},
		"twice":             {"*", []heard{notice(0), get(1), get(1)}, "number 1 of bus 0 follows"},
		"not to be heard":   {"t", []heard{notice(0), get(1), get(2), get(3), get(4)}, "number 4 of bus 0 on u"},
		"never said":        {"*", []heard{notice(0), notice(9), get(7)}, "number 7 of bus 0 on t"},
		"another topic":     {"*", []heard{notice(0), {at: time.Second, number: 1, topic: "u"}}, "number 1 of bus 0 on u"},
	} {
		h := NewHistory(nil)
		for n := 1; n <= 6; n++ {
			topic := "t"
			if n == 4 {
				topic = "u"
			}
			h.speakers[0].said = append(h.speakers[0].said, said{topic, time.Duration(n)*time.Second - time.Millisecond})
		}
		h.watches = []*watch{{name: "w", patterns: []string{c.pattern}, heard: c.heard}}
		got := strings.Join(h.violations(), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
