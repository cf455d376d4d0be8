package party_test

import (
	"strings"
	"testing"

	"example.com/shop/internal/platform/party"
)

func TestValidID(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"c": true, "7": true, "buyer-1": true, "a.b_c:d@e-f": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "-a": false, "a b": false, "a/b": false, "a\n": false, "ä": false, "a\x00": false,
	} {
		if got := party.ValidID(s); got != want {
			t.Errorf("ValidID(%q) = %v, want %v", s, got, want)
		}
	}
}
