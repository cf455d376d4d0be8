package app

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"example.com/shop/internal/app/webhook"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

const testSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// receiver receives webhooks, and verifies their signatures by the library of Standard Webhooks.
type receiver struct {
	t       *testing.T
	failing atomic.Bool // for the SKU bad

	mu  sync.Mutex
	got map[string][]stock.Entry // by SKU
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	verifier, bad := webhooks.NewWebhook(testSecret)
	var m struct {
		Type string
		Data struct {
			SKU     string
			Entries []stock.Entry
		}
	}
	if err := errors.Join(err, bad, verifier.Verify(body, req.Header), json.Unmarshal(body, &m)); err != nil || m.Type != "stock.moved" {
		r.t.Errorf("%s: %v", body, err)
		return
	}
	if m.Data.SKU == "bad" && r.failing.Load() {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[m.Data.SKU] = append(r.got[m.Data.SKU], m.Data.Entries...)
}

// count returns how many entries of a SKU have been received.
func (r *receiver) count(sku string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got[sku])
}

// A receiver that refuses the entries of one SKU gets those of the others. After the last attempt the timer of the SKU is dead, with the
// response as the reason. A redrive delivers what has waited, in its order.
func TestWebhookThatFailsForOneSKU(t *testing.T) {
	t.Parallel()
	r := &receiver{t: t, got: make(map[string][]stock.Entry)}
	r.failing.Store(true)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	database := "sqlite:" + t.TempDir() + "/shop.db"
	in := start(t, Config{Database: database, Webhook: server.URL + "/secret-path", WebhookSecret: testSecret})
	for _, sku := range []string{"bad", "good"} {
		in.send(t, http.MethodPut, "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"conditional"}`)
	}
	testbedtest.Eventually(t, "good is delivered", func() bool { return r.count("good") == 1 })
	order := func(sku string) {
		t.Helper()
		in.send(t, http.MethodPost, "/api/v1/orders", `{"customer_id":"c1","items":[{"sku":"`+sku+`","quantity":1}]}`)
	}
	order("bad")
	order("good")
	testbedtest.Eventually(t, "good is delivered again", func() bool { return r.count("good") == 2 })

	db, store := testbedtest.OpenSQL(t, database), openTestStore(t, database)
	timers, err := store.Timers()
	if err != nil {
		t.Fatal(err)
	}
	find := func() timeout.Row {
		rows, err := timers.List(t.Context(), timeout.Filter{Kind: webhook.Timer, Limit: 10})
		if i := slices.IndexFunc(rows, func(row timeout.Row) bool { return row.ID == "bad" }); i >= 0 && err == nil {
			return rows[i]
		}
		return timeout.Row{}
	}
	testbedtest.Eventually(t, "an attempt has failed", func() bool {
		row := find()
		return row.Attempt > 0 && strings.Contains(row.LastError, "418") && !strings.Contains(row.LastError, "secret-path")
	})
	testbedtest.Eventually(t, "the timer is dead", func() bool {
		// An attempt that is being made counts on from the attempts that it has read, so this is repeated.
		const last = "UPDATE timeouts SET attempt = ?, next_at = 0 WHERE kind = ? AND id = 'bad' AND attempt < ?"
		attempts := webhook.Options().Attempts - 1
		if _, err := db.ExecContext(t.Context(), last, attempts, webhook.Timer, attempts); err != nil {
			t.Fatal(err)
		}
		return find().State == timeout.Dead
	})
	order("bad")
	order("good")
	testbedtest.Eventually(t, "good is delivered a third time", func() bool { return r.count("good") == 3 })
	if row := find(); row.State != timeout.Dead || r.count("bad") != 0 {
		t.Errorf("%+v, %d entries of bad", row, r.count("bad"))
	}

	r.failing.Store(false)
	if rows, err := timers.Redrive(t.Context(), webhook.Timer, []string{"bad"}); len(rows) != 1 || err != nil { // as shop timers redrive does
		t.Fatal(rows, err)
	}
	testbedtest.Eventually(t, "bad is delivered", func() bool { return r.count("bad") == 3 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.IsSortedFunc(r.got["bad"], func(a, b stock.Entry) int { return int(a.ID - b.ID) }) || r.got["bad"][0].Movement != stock.Restock {
		t.Errorf("%+v", r.got["bad"])
	}
}
