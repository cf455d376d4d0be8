package e2e_test

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// storedOrder is an order as the rows have it. It holds its unit from one moment until the unit is released. It counts to the limits of
// its customer until it expires.
type storedOrder struct {
	id, customer, status, sku  string
	created, expires, released int64
	releases                   int
}

// storedOrders reads all orders of a server.
func storedOrders(t *testing.T, server string) (all []storedOrder) {
	t.Helper()
	rows, err := testbedtest.OpenSQL(t, server).QueryContext(t.Context(), `
SELECT o.id, o.customer_id, o.status, l.sku, o.created_at, o.expires_at, COALESCE(MIN(r.created_at), 0), COUNT(r.id)
FROM orders o JOIN order_lines l ON l.order_id = o.id LEFT JOIN ledger r ON r.order_id = o.id AND r.movement = 'RELEASE'
GROUP BY o.id, o.customer_id, o.status, l.sku, o.created_at, o.expires_at`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var o storedOrder
		if err := rows.Scan(&o.id, &o.customer, &o.status, &o.sku, &o.created, &o.expires, &o.released, &o.releases); err != nil {
			t.Fatal(err)
		}
		if o.releases == 0 {
			o.expires, o.released = math.MaxInt64, math.MaxInt64
		}
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// holds compares what customers know with the rows of a server, and audits the database. It returns the acknowledged orders that
// are not stored, or are not paid although that was acknowledged.
func (s *midSale) holds(t *testing.T, server, database string) (lost []receipt) {
	t.Helper()
	if s.odd != "" {
		t.Error(s.odd)
		s.logs(t)
	}
	stored := storedOrders(t, server)
	byID, bySKU, byCustomer := make(map[string]storedOrder), make(map[string][]storedOrder), make(map[string][]storedOrder)
	for _, o := range stored {
		byID[o.id] = o
		sku, _, _ := strings.Cut(o.sku, ".") // a shard's SKU has a suffix
		bySKU[sku] = append(bySKU[sku], o)
		byCustomer[o.customer] = append(byCustomer[o.customer], o)
		if o.releases > 1 || (o.releases == 1) != (o.status == "EXPIRED") {
			t.Errorf("the units were released %d times: %+v", o.releases, o)
		}
	}
	for id, r := range s.orders {
		if o := byID[id]; o.customer != r.customer || r.paid && o.status != "CONFIRMED" {
			lost = append(lost, r)
		}
	}
	for customer, orders := range byCustomer {
		if n := atOnce(orders, func(o storedOrder) int64 { return o.expires }); n > 1 || len(orders) > 1 && !strings.HasPrefix(customer, "one-") {
			t.Errorf("%s has %d orders, %d at once: %+v", customer, len(orders), n, orders)
		}
	}
	for _, sku := range s.allFew() {
		held := func(longer time.Duration) int {
			return atOnce(bySKU[sku], func(o storedOrder) int64 {
				return min(o.released, math.MaxInt64-longer.Microseconds()) + longer.Microseconds()
			})
		}
		if n := held(0); n > few || s.soldOut[sku] && held(s.waits) < few && !s.lossy {
			t.Errorf("%s: %d units were sold of %d", sku, n, few)
		}
	}
	for _, how := range [][]string{{"audit"}, {"audit", "--full"}} {
		if code, out, stderr := call(t, noEnv, append(how, "--database", database)...); code != 0 {
			t.Errorf("%s: exit code %d: %s%s", how, code, out, stderr)
		}
	}
	t.Logf("%d orders were acknowledged, %d are stored, %d are lost; refused for now: %v; the slowest response took %v",
		len(s.orders), len(stored), len(lost), s.refused, s.slowest)
	return lost
}

// atOnce returns how many of orders there were at the same time, each until a moment.
func atOnce(orders []storedOrder, until func(storedOrder) int64) (most int) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, o := range orders {
		changes = append(changes, change{o.created, 1}, change{until(o), -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by) })
	n := 0
	for _, c := range changes {
		n += c.by
		most = max(most, n)
	}
	return most
}

// logs logs what instances say of the odd response.
func (s *midSale) logs(t *testing.T) {
	t.Helper()
	id := regexp.MustCompile(`"trace_id":"(\w+)"`).FindStringSubmatch(s.odd)
	for _, in := range s.fleet {
		for line := range strings.Lines(in.stderr.String()) {
			if id != nil && strings.Contains(line, id[1]) {
				t.Log(line)
			}
		}
	}
}
