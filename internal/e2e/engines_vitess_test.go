package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// inShard returns the name of a SKU that is in a half of all keys. If shard is empty, it is sku.
func inShard(shard, sku string) string {
	for n := 0; shard != ""; n++ {
		name := fmt.Sprint(sku, ".", n)
		if lower := bits.ReverseBytes64(xxhash.Sum64String(name)) < 1<<63; lower == (shard == "-80") {
			return name
		}
	}
	return sku
}

// Three instances sell the SKUs of each of two shards while vtcombo and its server fail and are mended. Each acknowledged order is a
// row of its shard, no request is two, nothing is oversold, and limits hold. An order of SKUs of both shards, and a SKU of another
// shard, are refused and change nothing. At full size the page of results is written.
func TestSaleOnTwoShardsOfVitess(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Programs: newer(t, "mysql-9"), Vars: map[string]string{"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}})
	vitess := testbedtest.StartVitess(t, newer(t, "vitess"), server)
	shards := testbed.VitessShards()
	fleets, sales, page := make([][]*instance, len(shards)), make([]*midSale, len(shards)), make([]string, len(shards))
	for i, shard := range shards {
		url := vitess.URL(shard)
		fleets[i] = openShop(t, &servers{databases: [3]string{url, url, url}}, "--order-ttl", "10s")
		page[i] = lonely(t, vitess, fleets[i][0], shard)
	}
	refusesOtherShards(t, fleets, shards)
	for _, how := range []string{"migrate --create", "serve", "audit"} {
		code, _, stderr := call(t, noEnv, append(strings.Fields(how), "--database", strings.TrimSuffix(vitess.URL(""), ":"))...)
		if code != 1 || !strings.Contains(stderr, "an instance sells the SKUs of one at its primary: name it, such as shop:-80") {
			t.Errorf("%s without a shard: exit code %d: %s", how, code, stderr)
		}
	}
	for i, shard := range shards {
		sales[i] = newMidSaleIn(t, shard, fleets[i], exact...)
	}
	placeAll := func() {
		t.Helper()
		for _, s := range sales {
			s.placesAll(t)
		}
	}
	gaps := make([][]time.Duration, len(shards))
	for _, fault := range []func(){
		func() { must(t, vitess.Kill()); must(t, vitess.Restart(t.Context())) },
		func() { must(t, server.Kill()); must(t, server.Restart(t.Context())) },
		func() { must(t, vitess.Pause()); <-time.After(5 * time.Second); must(t, vitess.Resume()) },
	} {
		placeAll()
		began := time.Now()
		fault()
		placeAll()
		for i, s := range sales {
			gaps[i] = append(gaps[i], slices.Max(s.gaps(began)))
			t.Logf("%s: standstills of %v", shards[i], s.gaps(began))
		}
	}
	for i, s := range sales {
		s.stop()
		url := vitess.URL(shards[i])
		awaitExpiry(t, url)
		if lost := s.holds(t, url, url); len(lost) > 0 {
			t.Errorf("%s: %d acknowledged orders are lost, such as %v", shards[i], len(lost), lost[0])
		}
		s.buysAllOfFew(t, nil)
		page[i] = fmt.Sprintf("| %s | %d | 0 | %s", shards[i], len(s.orders), page[i])
		for _, gap := range gaps[i] {
			page[i] += fmt.Sprintf(" %.1f |", gap.Seconds())
		}
		page[i] += "\n"
	}
	if !t.Failed() {
		must(t, os.WriteFile("../../docs/benchmarks/results/vitess.md", []byte(vitessHead+strings.Join(page, "")), 0o600))
	}
}

// refusesOtherShards asks each fleet to create SKUs of the other shard, and to sell them, alone and together with its own.
func refusesOtherShards(t *testing.T, fleets [][]*instance, shards []string) {
	t.Helper()
	own := make([]string, len(shards))
	for i, fleet := range fleets {
		own[i] = inShard(shards[i], "basket")
		fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+own[i], `{"on_hand":5,"strategy":"conditional"}`)
	}
	for i, fleet := range fleets {
		other := own[1-i]
		fleet[0].want(t, http.StatusUnprocessableEntity, "PUT", "/api/v1/skus/"+other, `{"on_hand":5,"strategy":"conditional"}`)
		for _, items := range [][]string{{other}, {own[i], other}} {
			text := `{"sku":"` + strings.Join(items, `","quantity":1},{"sku":"`) + `","quantity":1}`
			a := fleet[0].want(t, http.StatusUnprocessableEntity, "POST", "/api/v1/orders", `{"customer_id":"c","items":[`+text+`]}`)
			if !strings.Contains(a, "the instances of another shard sell this SKU") || strings.Count(a, "pointer") != 1 {
				t.Errorf("%q at %s: %s", items, shards[i], a)
			}
		}
	}
	for i, fleet := range fleets {
		if level := fleet[0].want(t, http.StatusOK, "GET", "/api/v1/skus/"+own[i], ""); !strings.Contains(level, `"available":5`) {
			t.Errorf("after what was refused: %s", level)
		}
	}
}

// lonely places orders one after the other. It returns what vtgate and the tablets count for each: round trips and transactions of the
// shard, and transactions of other shards.
func lonely(t *testing.T, vitess *testbed.Vitess, in *instance, shard string) (cells string) {
	t.Helper()
	const orders = 100
	sku := inShard(shard, "lonely")
	in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"conditional"}`)
	place := func(n int) {
		in.want(t, http.StatusCreated, "POST", "/api/v1/orders", fmt.Sprintf(`{"customer_id":"lonely-%d","items":[{"sku":%q,"quantity":1}]}`, n, sku))
	}
	place(orders)
	before := vitessCounts(t, vitess)
	for n := range orders {
		place(n)
	}
	after := vitessCounts(t, vitess)
	if a := purchase(t.Context(), http.DefaultClient, in.url, sku, "Idempotency-Key", "lonely"); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	key := vitessCounts(t, vitess)
	count := func(what ...string) (n int) {
		for _, name := range what {
			n += after[name] - before[name]
		}
		return n
	}
	i := slices.Index(testbed.VitessShards(), shard)
	tablet := func(i int) string { return fmt.Sprintf("test-%010d.", i+1) }
	for _, table := range []string{"orders", "order_lines", "ledger", "timeouts"} {
		here, there := count("QueryCounts "+tablet(i)+table+".Insert"), count("QueryCounts "+tablet(1-i)+table+".Insert")
		if here != orders || there > 0 {
			t.Errorf("%s of %d orders: %d inserts in their shard %s, and %d in the other one", table, orders, here, shard, there)
		}
	}
	const keys = "idempotency_keys.Insert"
	if here, there := "QueryCounts "+tablet(i)+keys, "QueryCounts "+tablet(1-i)+keys; key[here] != after[here]+1 || key[there] != after[there] {
		t.Errorf("an order with a key: %d inserts of keys in its shard, %d in the other one", key[here]-after[here], key[there]-after[there])
	}
	own := "Queries " + tablet(i)
	return fmt.Sprintf("%.1f | %.1f | %.1f |", float64(count("MysqlServerTimings Query"))/orders, float64(count(own+"COMMIT"))/orders,
		float64(count(own+"Select", own+"Insert", own+"Update", own+"UpdateLimit", own+"Delete"))/orders)
}

// vitessCounts returns counters of vtcombo: of statements, by tablet, table and kind, and of requests.
func vitessCounts(t *testing.T, vitess *testbed.Vitess) map[string]int {
	t.Helper()
	a := ask(t.Context(), http.DefaultClient, http.MethodGet, "http://"+vitess.Status()+"/debug/vars", "")
	must(t, a.err)
	var vars struct {
		QueryCounts                 map[string]int
		Queries, MysqlServerTimings struct {
			Histograms map[string]struct{ Count int }
		}
	}
	must(t, json.Unmarshal([]byte(a.body), &vars))
	counts := make(map[string]int)
	for name, n := range vars.QueryCounts {
		counts["QueryCounts "+name] = n
	}
	for name, h := range vars.Queries.Histograms {
		counts["Queries "+name] = h.Count
	}
	for name, h := range vars.MysqlServerTimings.Histograms {
		counts["MysqlServerTimings "+name] = h.Count
	}
	return counts
}

// vitessHead begins the page of results.
const vitessHead = `# Two shards of Vitess

## How to read it

Three instances per shard sell by eight strategies, each its own SKUs, while vtcombo and its MySQL fail and are mended. Each row of this
table exists only if no acknowledged order is lost or doubled, no SKU is oversold, and each limit per customer holds. The first three figures are those of 100
orders that are placed one after the other by ` + "`conditional`" + `, with what the instances do besides. None of them reached the other shard. The
last three are the longest time without an order of a SKU, in seconds.

Vitess 24 runs as vtcombo: one process with a topology, a vtgate and the tablets, over one MySQL 9, on two processors. So the page proves
no throughput, and shows neither the failover of a shard nor several vtgates. ` + "`make engines`" + ` writes it
([TestSaleOnTwoShardsOfVitess](../../../internal/e2e/engines_vitess_test.go)).

| shard | acknowledged | lost | round trips to vtgate | transactions | statements | vtcombo killed | MySQL killed | vtcombo paused for 5 s |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
`
