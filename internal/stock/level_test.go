package stock_test

import (
	"strings"
	"testing"

	"example.com/shop/internal/stock"
)

func TestValidSKU(t *testing.T) {
	for sku, want := range map[string]bool{
		"a": true, "A-1_b.c": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "-a": false, ".": false, "a b": false, "a/b": false,
		"{a}": false, "ä": false, "a\x00": false, "a\n": false,
	} {
		if got := stock.ValidSKU(sku); got != want {
			t.Errorf("ValidSKU(%q) = %v", sku, got)
		}
	}
}
