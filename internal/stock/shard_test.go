package stock_test

import (
	"fmt"
	"strings"
	"testing"

	"example.com/shop/internal/stock"
)

// Each SKU is in one of the shards that divide all keys, and each shard has its part of many SKUs.
func TestEachSKUIsInOneShard(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"-80 80-", "-40 40-80 80-c0 c0-", "-4012 4012-", "-", ""} {
		var shards []stock.Shard
		for name := range strings.SplitSeq(names, " ") {
			s, err := stock.ParseShard(name)
			if err != nil || s.String() != name {
				t.Fatal(s, err)
			}
			shards = append(shards, s)
		}
		had := make([]int, len(shards))
		for n := range 1000 {
			in := 0
			for i, s := range shards {
				if s.Has(fmt.Sprint("sku-", n)) {
					in++
					had[i]++
				}
			}
			if in != 1 {
				t.Fatalf("sku-%d is in %d of the shards %s", n, in, names)
			}
		}
		for i, n := range had {
			if n < 500/len(shards) {
				t.Errorf("%d of 1,000 SKUs are in %s of %s", n, shards[i], names)
			}
		}
	}
}

// The keys are those of Vitess's vindex xxhash, of which its own tests have these.
func TestShardsAreThoseOfVitess(t *testing.T) {
	t.Parallel()
	for sku, shard := range map[string]string{
		"test1":                                 "d01ab7e4d6978f0b-d01ab7e4d6978f0c",
		"test2":                                 "87eb11714c0a0e89-87eb11714c0a0e8a",
		"testaverylongvaluetomakesurethisworks": "81d8c38e0d850e6a-81d8c38e0d850e6b",
	} {
		s, err := stock.ParseShard(shard)
		if err != nil || !s.Has(sku) {
			t.Errorf("%s is not in %s: %v", sku, shard, err)
		}
	}
}

func TestShardsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"80", "8-", "-xy", "80-80", "80-40", "-00", "112233445566778899-", "80-90-a0"} {
		if s, err := stock.ParseShard(name); err == nil {
			t.Errorf("%q is %+v", name, s)
		}
	}
}
