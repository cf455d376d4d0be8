package blackbox_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
)

// TestKeys says what a key may look like, and that its quotes do not belong to it.
func TestKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 255)
	for field, want := range map[string]string{ // empty: refused
		"8e03978e-40d5-43dd-bc93-6894a57f9324":   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`"8e03978e-40d5-43dd-bc93-6894a57f9324"`: "8e03978e-40d5-43dd-bc93-6894a57f9324",
		"k":                                      "k",
		long:                                     long,
		`"` + long + `"`:                         long,
		`"with space"`:                           "with space",
		`"a, b"`:                                 "a, b",
		`"a\"b\\c"`:                              `a"b\c`,
		"a/b+c=d;e:f?'()":                        "a/b+c=d;e:f?'()",
		`"'; DROP TABLE orders; --"`:             "'; DROP TABLE orders; --",
		"":                                       "",
		`""`:                                     "",
		`"`:                                      "",
		`"a`:                                     "",
		`a"`:                                     "",
		`"a"b`:                                   "",
		`"a" `:                                   "a", // spaces around a field are not a part of it
		`"a";p=1`:                                "",
		`"a\`:                                    "",
		`"a\b"`:                                  "",
		`"a", "b"`:                               "",
		"a, b":                                   "",
		"a,b":                                    "",
		"a b":                                    "",
		"ä":                                      "",
		"\"\x7f\"":                               "",
		"a\x00":                                  "",
		"a\tb":                                   "",
		long + "k":                               "",
		`"` + long + `k"`:                        "",
		`"` + strings.Repeat(`\"`, 255) + `"`:    strings.Repeat(`"`, 255),
		"'; DROP TABLE orders; --":               "",
		strings.Repeat("k", 10_000):              "",
		"\xff":                                   "",
		"k1\r\nX-Admin: true":                    "",
	} {
		var domain recorder
		s := newHandler(t, httpapi.Config{Orders: &domain})
		status, _, answer := s.send(t, post(basket, "Idempotency-Key", strings.TrimRight(field, " ")))
		if want == "" {
			if wantType(t, answer, "malformed-request"); status != http.StatusBadRequest || domain.calls != 0 {
				t.Errorf("%.60q: %d, %d orders", field, status, domain.calls)
			}
			continue
		}
		if status != http.StatusCreated || domain.once == nil || domain.once.Scope.Key != want {
			t.Errorf("%.60q: %d %+v", field, status, domain.once)
		}
	}
}

// FuzzIdempotencyKey takes any text for a key. An accepted key is within all limits, and is the same key in quotes.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"k", `"k"`, `"a\"b\\c"`, `"a", "b"`, "a b", "", `"`, "\x00", strings.Repeat("k", 256), `"k";p`, "ä"} {
		f.Add(seed)
	}
	var domain recorder
	s := newHandler(f, httpapi.Config{Orders: &domain})
	ask := func(t *testing.T, field string) (key string) {
		t.Helper()
		domain = recorder{}
		switch status, _, answer := s.send(t, post(basket, "Idempotency-Key", field)); {
		case status == http.StatusCreated && domain.once != nil:
			return domain.once.Scope.Key
		case status != http.StatusBadRequest || domain.calls != 0:
			t.Fatalf("%q: %d %v", field, status, answer)
		}
		return ""
	}
	f.Fuzz(func(t *testing.T, field string) {
		key := ask(t, field)
		if key == "" {
			return
		}
		if len(key) > 255 || strings.Trim(key, printable) != "" {
			t.Fatalf("accepted %q", key)
		}
		if again := ask(t, `"`+strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(key)+`"`); again != key {
			t.Errorf("%q is %s, and quoted %s", field, strconv.Quote(key), strconv.Quote(again))
		}
	})
}

var printable = func() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}()
