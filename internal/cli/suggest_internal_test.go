package cli

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"serve", "serve", 0},
		{"serv", "serve", 1},
		{"srve", "serve", 1},
		{"sevre", "serve", 1},
		{"kitten", "sitting", 3},
		{"listen", "silent", 4},
		{"ab", "ba", 1},
		{"ca", "abc", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"serve", "demo", "lab", "audit", "timers", "healthcheck", "completion", "admin-url"}
	for word, want := range map[string]string{
		"serv": "serve", "dmeo": "demo", "timer": "timers", "helthchek": "healthcheck", "health": "healthcheck", "comp": "completion", "url": "admin-url",
		"sell": "", "x": "", "": "", "nothing-like-it": "", "he": "", "rl": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
