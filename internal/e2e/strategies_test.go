package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// A lock service that lost its data and whose clock is behind issues low fences. The row refuses them until the
// counter is raised to the accepted token.
func TestFenceAheadOfTheLockService(t *testing.T) {
	t.Parallel()
	for strategy, flags := range map[string]func() []string{
		"redis": func() []string { return []string{"--redis", testbedtest.Redis(t)} },
		"redlock": func() []string {
			var urls []string
			for range 3 {
				urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
			}
			return []string{"--redlock", strings.Join(urls, ",")}
		},
		"sql": func() []string { return nil },
	} {
		t.Run(strategy, func(t *testing.T) {
			database := sqliteURL(t)
			r := start(t, append(flags(), "--database", database)...)
			sku := order.NewID() // tests share the Redis
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":5,"strategy":"`+strategy+`"}`)
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			ahead := dlock.Fence{Token: uint64(time.Now().Add(time.Hour).UnixMicro()), Owner: "before the data was lost"}
			request := &order.Request{TTL: time.Hour, Order: order.Order{
				ID: order.NewID(), CustomerID: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}},
			}}
			claims := []stock.Claim{{SKU: sku, Update: stock.Fenced, Fence: ahead}}
			if err := store.Commit(t.Context(), &order.Batch{Claims: claims, Requests: []*order.Request{request}}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1))
			}
			if code, out, _ := call(t, noEnv, "audit", "--database", database); code != 0 {
				t.Error(out)
			}
		})
	}
}
