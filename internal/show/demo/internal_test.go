package demo

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/stock"
)

// books returns the audit of a SKU that was sold exactly or, with a surplus,
// oversold without a trace in the columns.
func books(accepted, lost int64) stock.Audit {
	return stock.Audit{
		Stocked: 100, OnHand: 100, LedgerOnHand: 100,
		Open: accepted, LedgerReserved: accepted, Reserved: accepted - lost,
	}
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		accepted, rejected, errors int
		books                      stock.Audit
		want                       string
	}{
		"exact":                         {100, 700, 0, books(100, 0), Exact},
		"oversold":                      {150, 650, 0, books(150, 60), Oversold},
		"undersold":                     {90, 710, 0, books(90, 0), Undersold},
		"a 201 without an order":        {100, 700, 0, books(99, 0), Broken},
		"an order without a 201":        {99, 701, 0, books(100, 0), Broken},
		"errors are no answers":         {99, 700, 1, books(100, 0), Broken},
		"an error may hide an oversell": {100, 699, 1, books(101, 0), Oversold},
		"lost update without oversell":  {100, 700, 0, books(100, 1), Broken},
		"attempts went missing":         {100, 699, 0, books(100, 0), Broken},
	} {
		s := buyers.Sale{Instances: map[string]bool{"shop-1": true, "shop-2": true}, Accepted: c.accepted, Rejected: c.rejected, Errors: c.errors, Elapsed: time.Second}
		if variant := judge("redis", 100, 800, 3, s, c.books); variant.Verdict != c.want {
			t.Errorf("%s: %s, want %s", name, variant.Verdict, c.want)
		}
	}
}

// A sale that one instance of several answered shows nothing about several.
func TestJudgeWantsTwoInstances(t *testing.T) {
	s := buyers.Sale{Accepted: 100, Rejected: 700, Elapsed: time.Second, Instances: map[string]bool{"shop-1": true}}
	for instances, want := range map[int]string{1: Exact, 3: Broken} {
		if variant := judge("redis", 100, 800, instances, s, books(100, 0)); variant.Verdict != want {
			t.Errorf("of %d: %s, want %s", instances, variant.Verdict, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		variants  string // STRATEGY=VERDICT ...
		instances int
		want      string
	}{
		{"naive=oversold redis=exact", 3, Proved},
		{"naive=oversold local=oversold redis=exact", 3, Proved},
		{"naive=oversold", 3, Proved},
		{"naive=exact redis=exact", 3, Inconclusive},
		{"naive=oversold local=exact redis=exact", 3, Inconclusive},
		{"redis=exact", 3, Inconclusive},
		{"local=exact redis=exact", 1, Inconclusive},
		{"naive=oversold local=exact redis=exact", 1, Proved},
		{"naive=oversold redis=oversold", 3, Failed},
		{"naive=exact redis=undersold", 3, Failed},
		{"naive=oversold conditional=broken redis=exact", 3, Failed},
		{"naive=oversold conditional=inconclusive redis=exact", 3, Inconclusive},
		{"naive=inconclusive conditional=inconclusive", 3, Inconclusive},
		{"naive=oversold conditional=inconclusive redis=broken", 3, Failed},
	} {
		var variants []Variant
		for f := range strings.FieldsSeq(c.variants) {
			strategy, v, _ := strings.Cut(f, "=")
			variants = append(variants, Variant{Strategy: strategy, Verdict: v})
		}
		if got := verdict(Report{Variants: variants, Instances: c.instances}); got != c.want {
			t.Errorf("%s on %d: %s, want %s", c.variants, c.instances, got, c.want)
		}
	}
}

// The verdict names what ran, and no strategy that did not.
func TestProofNamesWhatRan(t *testing.T) {
	for strategies, want := range map[string]bool{"naive local": false, "naive redis": true} {
		var variants []Variant
		for s := range strings.FieldsSeq(strategies) {
			variants = append(variants, Variant{Strategy: s, Expected: expected(s, 3)})
		}
		if got := proof(variants); strings.Contains(got, "every other strategy was exact") != want {
			t.Errorf("%s: %s", strategies, got)
		}
	}
}

// A sale is held again only where the strategy promises nothing else, and the report says that it was.
func TestSaleIsRepeatedOnlyForUnsafeBaselines(t *testing.T) {
	for _, c := range []struct {
		strategy, verdict string
		instances         int
		want              bool
	}{
		{"naive", Oversold, 3, false},
		{"naive", Exact, 3, true},
		{"naive", Broken, 3, true},
		{"local", Exact, 3, true},
		{"local", Exact, 1, false},
		{unfenced, Exact, 3, false},
		{unfenced, Oversold, 3, true},
		{unfenced, Undersold, 3, false},
		{unfenced, Broken, 3, false},
		{"redis", Oversold, 3, false},
		{"conditional", Broken, 3, false},
	} {
		if got := again(Variant{Strategy: c.strategy, Expected: expected(c.strategy, c.instances), Verdict: c.verdict}); got != c.want {
			t.Errorf("%s, %s on %d: %t, want %t", c.strategy, c.verdict, c.instances, got, c.want)
		}
	}
	for strategy, want := range map[string]string{unfenced: "sale 3 of at most 3: each one before it oversold", "naive": "each one before it did not oversell"} {
		var out strings.Builder
		p := &printer{Config{Out: &out}}
		p.variant(Variant{Strategy: strategy, Repeated: 2})
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q says not %q", out.String(), want)
		}
		out.Reset()
		if p.variant(Variant{Strategy: strategy}); strings.Contains(out.String(), "sale") {
			t.Errorf("%q, though it was not repeated", out.String())
		}
	}
}

func TestStartSaysWhoSells(t *testing.T) {
	for instances, want := range map[int]string{1: " at one instance of shop.\n", 3: " at 3 instances of shop,\neach a process of its own."} {
		var out strings.Builder
		p := &printer{Config{Out: &out, Instances: instances}}
		p.start(&fleet.Stores{})
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not contain %q", out.String(), want)
		}
	}
}

// The commands that a run proposes are commands that its user can enter.
func TestProgramIsAsTheUserCalledIt(t *testing.T) {
	for called, want := range map[string]string{
		"shop":                                  "shop",
		"./shop":                                "./shop",
		"/home/shop":                            "/home/shop",
		"/tmp/go-build1234567890/b001/exe/shop": "go run ./cmd/shop",
		"/var/cache/0a/0a" + strings.Repeat("e", 62) + "-d/shop": "go run ./cmd/shop",
		"/home/me/go-build/shop":                                 "/home/me/go-build/shop",
	} {
		if got := program(called); got != want {
			t.Errorf("program(%q) = %q, want %q", called, got, want)
		}
	}
}

func TestPercentile(t *testing.T) {
	s := buyers.Sale{}
	if got := s.Percentile(99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for i := range 200 {
		s.Latencies = append(s.Latencies, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := s.Percentile(p); got != want {
			t.Errorf("p%d = %d, want %d", p, got, want)
		}
	}
}
