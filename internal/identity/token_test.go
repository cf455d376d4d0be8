package identity_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"example.com/shop/internal/identity"
)

// golden is a key that must be read the same for ever: keys like it are out there.
const (
	golden       = "shop_abcdefghij_aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dyp6ha7i"
	goldenPrefix = "abcdefghij"
)

func goldenSecret() (secret [32]byte) {
	for i := range secret {
		secret[i] = byte(i)
	}
	return secret
}

func TestFormat(t *testing.T) {
	if want := forge(goldenPrefix, goldenSecret()); golden != want {
		t.Fatalf("by the description of the format it is %s", want)
	}
	k, err := identity.ParseToken(golden)
	if err != nil || k.Prefix() != goldenPrefix || k.Reveal() != golden {
		t.Errorf("%v, %v", k, err)
	}
	seen := make(map[string]bool)
	for range 1000 {
		k := identity.NewToken()
		again, err := identity.ParseToken(k.Reveal())
		if err != nil || again != k || len(k.Reveal()) != 72 || !identity.ValidPrefix(k.Prefix()) {
			t.Fatalf("%v, %v", k, err)
		}
		if seen[k.Prefix()] || seen[string(fmt.Append(nil, k.Hash()))] {
			t.Fatal("two keys are alike")
		}
		seen[k.Prefix()], seen[string(fmt.Append(nil, k.Hash()))] = true, true
	}
}

// A mistyped character, two swapped ones or a lost end are found by the key alone.
func TestMistakes(t *testing.T) {
	refused := func(what, text string) {
		t.Helper()
		if _, err := identity.ParseToken(text); err == nil && text != golden {
			t.Errorf("%s: %q is a key", what, text)
		}
	}
	for i := range golden {
		refused("cut off", golden[:i])
		refused("beginning lost", golden[i+1:])
		refused("letter lost", golden[:i]+golden[i+1:])
		refused("letter doubled", golden[:i+1]+golden[i:])
		for c := range 128 {
			refused("letter changed", golden[:i]+string(rune(c))+golden[i+1:])
		}
		if i > 0 {
			refused("letters swapped", golden[:i-1]+golden[i:i+1]+golden[i-1:i]+golden[i+1:])
		}
	}
	for _, text := range []string{
		" " + golden, golden + " ", golden + "\n", golden[:40] + "\n" + golden[40:], golden[:70] + "\r\n", strings.ToUpper(golden),
		"Bearer " + golden, golden + "=", golden[:71] + "=", golden + golden, strings.Repeat("a", 72), strings.Repeat("a", 1<<20), "\x00",
		forge("ABCDEFGHIJ", goldenSecret()), forge("' OR 1=1--", goldenSecret()), forge("abcdefgh\r\n", goldenSecret()),
		golden[:5] + "ABCDEFGHIJ" + golden[15:], golden[:71] + "\xff", "sh\u00f6p_" + golden[6:],
	} {
		refused("another spelling", text)
	}
}

// FuzzParseToken reads any text as a key. A valid key is written in the only possible way, has a prefix that may be
// logged, and is refused if any letter changes.
func FuzzParseToken(f *testing.F) {
	for _, seed := range []string{
		golden, golden[:71], golden + "\n", golden[:40] + "\n" + golden[40:], strings.ToUpper(golden), golden + "=", "", "shop_", "shop__",
		"shop_abcdefghij_", "Bearer " + golden, strings.Repeat("_", 72), guess(1), forge("' OR 1=1--", goldenSecret()), "shop_\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00_" + golden[16:],
	} {
		f.Add(seed)
	}
	_, malformed := identity.ParseToken("")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := identity.ParseToken(text)
		if err != nil {
			if k != (identity.Token{}) || err.Error() != malformed.Error() {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if k.Reveal() != text || !identity.ValidPrefix(k.Prefix()) || len(text) != 72 {
			t.Errorf("%q is read as %q with the prefix %q", text, k.Reveal(), k.Prefix())
		}
		for i := range text {
			other := []byte(text)
			other[i] ^= 1
			if changed, err := identity.ParseToken(string(other)); err == nil && changed.Prefix() == k.Prefix() && changed.Hash() == k.Hash() {
				t.Errorf("%q and %q are one key", text, other)
			}
		}
	})
}

// A key that is printed, logged or marshalled by mistake does not show its secret.
func TestTokenPrintsWithoutItsSecret(t *testing.T) {
	k, err := identity.ParseToken(golden)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
		if strings.Contains(verb, "T") {
			fmt.Fprintf(&out, verb+"\n", k, k)
			continue
		}
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", &k)
		fmt.Fprintf(&out, verb+"\n", []any{k, struct{ K identity.Token }{k}})
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).InfoContext(t.Context(), "key", slog.Any("key", k), slog.Any("in", struct{ K identity.Token }{k}))
	}
	if err := json.NewEncoder(&out).Encode(map[string]any{"key": k}); err != nil {
		t.Fatal(err)
	}
	shows(t, out.String(), golden)
	if !strings.Contains(out.String(), goldenPrefix) {
		t.Errorf("the prefix is missing: %s", out.String())
	}
}

// shows fails the test if text has the secret of a key in it, in letters, bytes or numbers.
func shows(t *testing.T, text, key string) {
	t.Helper()
	k, err := identity.ParseToken(key)
	if err != nil {
		t.Fatal(err)
	}
	hash := k.Hash()
	parts := []string{key[16:40], key[40:], hex.EncodeToString(hash[:8])}
	if key == golden {
		secret := goldenSecret()
		parts = append(parts, string(secret[4:12]), fmt.Sprintf("%x", secret[4:12]), "4 5 6 7 8 9", "0x4, 0x5")
	}
	for _, part := range parts {
		if strings.Contains(strings.ToLower(text), strings.ToLower(part)) {
			t.Errorf("%q shows %q", text, part)
		}
	}
}
