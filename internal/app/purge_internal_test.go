package app

import (
	"net/http"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestOldIdempotencyKeysArePurged when they are a day old, by the leader and nobody else.
func TestOldIdempotencyKeysArePurged(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + t.TempDir() + "/shop.db"
	in := start(t, Config{Database: database, Canary: true}) // no candidate
	in.send(t, http.MethodPut, "/api/v1/skus/a", `{"on_hand":1000,"strategy":"conditional"}`)
	send := func(key string) string {
		t.Helper()
		return in.send(t, http.MethodPost, "/api/v1/orders", oneUnit, "Idempotency-Key", key)
	}
	old, young := send("old"), send("young")
	aged, err := testbedtest.OpenSQL(t, database).ExecContext(t.Context(), "UPDATE idempotency_keys SET created_at = created_at - ? WHERE idem_key = 'old'", answersAge.Microseconds())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := aged.RowsAffected(); n != 1 {
		t.Fatal(n, err)
	}
	store := openTestStore(t, database)
	lead := candidate(t, store, "leader")
	if n, leads, err := purgeOnce(t.Context(), store, lead); n != 0 || leads || err != nil {
		t.Errorf("%d answers by one who leads nobody, %v", n, err)
	}
	elect(t, lead)
	if n, leads, err := purgeOnce(t.Context(), store, lead); n != 1 || !leads || err != nil {
		t.Errorf("%d answers, %v", n, err)
	}
	if send("young") != young || send("old") == old {
		t.Error("want the young answer again, and the old one not")
	}
}
