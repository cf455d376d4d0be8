package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The leader deletes the response to a request with a key after --key-retention, and an order after --retention, and no others. It
// deletes orders about every ten minutes, so only a test of full size waits for that.
func TestKeysAndOrdersAreDeletedAfterTheirRetention(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	in := start(t, "--database", database, "--key-retention", "2h", "--retention", "3h")
	in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":9,"strategy":"conditional"}`)
	db, ids := testbedtest.OpenSQL(t, database), make(map[string]string)
	for key, age := range map[string]time.Duration{"old": 4 * time.Hour, "young": time.Hour} {
		a := certain(t.Context(), http.DefaultClient, in.url, "a", "Idempotency-Key", key)
		ids[key] = orderID(t, a.body)
		in.want(t, http.StatusOK, "POST", "/api/v1/orders/"+ids[key]+"/cancel", "")
		surely(t, func() error {
			_, err := db.ExecContext(t.Context(), "UPDATE idempotency_keys SET created_at = created_at - ? WHERE idem_key = ?", age.Microseconds(), key)
			return err
		})
		surely(t, func() error {
			_, err := db.ExecContext(t.Context(), "UPDATE orders SET expires_at = expires_at - ? WHERE id = ?", age.Microseconds(), ids[key])
			return err
		})
	}
	left := func(query string) (names string) {
		surely(t, func() error { return db.QueryRowContext(t.Context(), query).Scan(&names) })
		return names
	}
	const keys, orders = "SELECT GROUP_CONCAT(idem_key) FROM idempotency_keys", "SELECT GROUP_CONCAT(id) FROM orders"
	testbedtest.Eventually(t, "only the young key is left", func() bool { return left(keys) == "young" })
	if testbedtest.Size(0, 1) == 0 {
		return
	}
	for end := time.Now().Add(20 * time.Minute); left(orders) != ids["young"] && time.Now().Before(end); <-time.After(time.Second) {
	}
	if got := left(orders); got != ids["young"] {
		t.Errorf("the orders %s are left, want %s", got, ids["young"])
	}
}
