package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/sqlstore"
)

// settled returns the orders of an act without faults, and the fates of all orders, also of those that were paid
// afterwards. The first order is a millisecond late, and each next one a millisecond more.
func settled() (orders, fates []sqlstore.Fate) {
	due := time.Unix(1_800_000_000, 0)
	for i := range unpaid {
		o := sqlstore.Fate{OrderID: fmt.Sprintf("o%03d", i), ExpiresAt: due}
		orders = append(orders, o)
		o.ReleasedAt, o.Releases = due.Add(time.Duration(i+1)*time.Millisecond), 1
		fates = append(fates, o, sqlstore.Fate{OrderID: fmt.Sprintf("p%03d", i), ExpiresAt: due.Add(time.Minute), Payments: 1})
	}
	return orders, fates
}

func TestJudgeExpiry(t *testing.T) {
	for name, c := range map[string]struct {
		change func(orders, fates []sqlstore.Fate)
		placed int
		resold int
		want   Expiry
	}{
		"good":                      {nil, 100, 100, Expiry{Fired: 100}},
		"early by a microsecond":    {func(_, f []sqlstore.Fate) { f[8].ReleasedAt = f[8].ExpiresAt.Add(-time.Microsecond) }, 100, 100, Expiry{Fired: 100, Early: 1}},
		"at its very moment":        {func(_, f []sqlstore.Fate) { f[8].ReleasedAt = f[8].ExpiresAt }, 100, 100, Expiry{Fired: 100}},
		"lost":                      {func(_, f []sqlstore.Fate) { f[8].Releases = 0 }, 100, 100, Expiry{Fired: 99, Lost: 1}},
		"released twice":            {func(_, f []sqlstore.Fate) { f[8].Releases = 2 }, 100, 100, Expiry{Fired: 100, Double: 1}},
		"paid and released":         {func(_, f []sqlstore.Fate) { f[8].Payments = 1 }, 100, 100, Expiry{Fired: 100, Double: 1}},
		"a later one, released too": {func(_, f []sqlstore.Fate) { f[9].Releases, f[9].ReleasedAt = 1, f[9].ExpiresAt }, 100, 100, Expiry{Fired: 100, Double: 1}},
		"a later one, early":        {func(_, f []sqlstore.Fate) { f[9].Releases, f[9].Payments = 1, 0 }, 100, 100, Expiry{Fired: 100, Early: 1}},
		"paid instead":              {func(_, f []sqlstore.Fate) { f[8].Releases, f[8].Payments = 0, 1 }, 100, 100, Expiry{Fired: 99, Lost: 1}},
		"a 201 without an order":    {nil, 101, 100, Expiry{Fired: 100}},
		"not all sold again":        {nil, 100, 99, Expiry{Fired: 100}},
	} {
		orders, fates := settled()
		if c.change != nil {
			c.change(orders, fates)
		}
		e := Expiry{second: buyers.Sale{Accepted: c.resold}}
		e.judge(buyers.Sale{Accepted: c.placed}, orders, fates)
		if e.Orders != 100 || e.Fired != c.want.Fired || e.Early != c.want.Early || e.Lost != c.want.Lost || e.Double != c.want.Double {
			t.Errorf("%s: %+v, want %+v", name, e, c.want)
		}
		if good := name == "good" || name == "at its very moment"; e.ok() != good {
			t.Errorf("%s: ok is %v", name, e.ok())
		}
		if name == "good" && (e.P50 != 50 || e.P99 != 99) {
			t.Errorf("lateness of 1 to 100 ms: p50 %v, p99 %v", e.P50, e.P99)
		}
	}
}

// Nothing but an expiry that went well lets a run pass.
func TestVerdictOnExpiry(t *testing.T) {
	orders, fates := settled()
	good := Expiry{second: buyers.Sale{Accepted: unpaid}}
	good.judge(buyers.Sale{Accepted: unpaid}, orders, fates)
	unbalanced, unanswered := good, good
	unbalanced.broken = []string{"reserved differs from the ledger: column 1, ledger 0"}
	unanswered.err = "status 500"
	variants := []Variant{{Strategy: "naive", Verdict: Oversold}, {Strategy: "redis", Verdict: Exact}}
	for name, c := range map[string]struct {
		expiry *Expiry
		want   string
	}{
		"not held": {nil, Proved}, "good": {&good, Proved}, "unbalanced": {&unbalanced, Failed},
		"unanswered": {&unanswered, Failed}, "nothing happened": {&Expiry{}, Failed},
	} {
		r := Report{Variants: variants, Instances: 3, Expiry: c.expiry}
		r.Verdict = verdict(r)
		if r.Verdict != c.want {
			t.Errorf("%s: %s, want %s", name, r.Verdict, c.want)
		}
		var out bytes.Buffer
		p := &printer{Config{Out: &out}}
		if c.expiry != nil {
			p.expiry(*c.expiry)
		}
		if err := p.report(r); err != nil {
			t.Fatal(err)
		}
		if failed := strings.Contains(out.String(), "not all unpaid orders released"); failed != (c.want == Failed) {
			t.Errorf("%s: a person reads\n%s", name, &out)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "--order-ttl") && len(strings.Fields(line)) < 12 {
				t.Errorf("%s: columns run into one another: %s", name, line)
			}
		}
	}
}

// Programs read these names.
func TestExpiryAsJSON(t *testing.T) {
	e := &Expiry{Orders: 100, Fired: 99, Early: 1, Lost: 2, Double: 3, P50: 1.5, P99: 9}
	for want, r := range map[string]Report{
		`,"variants":null,"expiry":{"orders":100,"fired":99,"early":1,"lost":2,"double":3,"p50_ms":1.5,"p99_ms":9}}`: {Expiry: e},
		`,"variants":null,"cluster":{"members":["a","b"],"leader":"a","term":7}}`:                                    {Cluster: Cluster{Members: []string{"a", "b"}, Leader: "a", Term: 7}},
		`,"variants":null}`: {},
	} {
		if b, err := json.Marshal(r); err != nil || !strings.HasSuffix(string(b), want) {
			t.Errorf("%s, want %s, %v", b, want, err)
		}
	}
}
