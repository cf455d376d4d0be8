package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestOldIdempotencyKeysArePurged when their retention is over, only by the leader.
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
	const keys = 2 * time.Hour
	aged, err := testbedtest.OpenSQL(t, database).ExecContext(t.Context(), "UPDATE idempotency_keys SET created_at = created_at - ? WHERE idem_key = 'old'", keys.Microseconds())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := aged.RowsAffected(); n != 1 {
		t.Fatal(n, err)
	}
	store := openTestStore(t, database)
	lead := candidate(t, store, "leader")
	if n, leads, err := onceAsLeader(t.Context(), lead, time.Minute, answersOf(store, keys)); n != 0 || leads || err != nil {
		t.Errorf("%d answers by one who leads nobody, %v", n, err)
	}
	elect(t, lead)
	if n, leads, err := onceAsLeader(t.Context(), lead, time.Minute, answersOf(store, keys)); n != 1 || !leads || err != nil {
		t.Errorf("%d answers, %v", n, err)
	}
	if send("young") != young || send("old") == old {
		t.Error("want the young answer again, and the old one not")
	}
}

// Orders are deleted only by the leader, when the retention is over. Such an order is not found, and the same request with its
// key is answered as before, and places no second order.
func TestOldOrdersAreDeletedByTheLeader(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + t.TempDir() + "/shop.db"
	in := start(t, Config{Database: database, Canary: true}) // no candidate
	in.send(t, http.MethodPut, "/api/v1/skus/a", `{"on_hand":1000,"strategy":"conditional"}`)
	send := func() string {
		t.Helper()
		return in.send(t, http.MethodPost, "/api/v1/orders", oneUnit, "Idempotency-Key", "key")
	}
	placed := send()
	_, id, _ := strings.Cut(placed, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	store := openTestStore(t, database)
	if _, _, err := store.Settle(t.Context(), order.Target{ID: id}, order.Cancelled, ""); err != nil {
		t.Fatal(err)
	}
	retention := 24 * time.Hour
	db := testbedtest.OpenSQL(t, database)
	if _, err := db.ExecContext(t.Context(), "UPDATE orders SET expires_at = expires_at - ?", (retention + time.Hour).Microseconds()); err != nil {
		t.Fatal(err)
	}
	lead := candidate(t, store, "leader")
	if n, leads, err := onceAsLeader(t.Context(), lead, time.Minute, ordersOf(store, retention)); n != 0 || leads || err != nil {
		t.Errorf("%d orders by one who does not lead, %v", n, err)
	}
	elect(t, lead)
	if n, _, err := onceAsLeader(t.Context(), lead, time.Minute, ordersOf(store, retention+2*time.Hour)); n != 0 || err != nil {
		t.Errorf("%d orders before the retention was over, %v", n, err)
	}
	said, says := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- purgeOrders(store, retention, time.Second, lead, slog.New(slog.NewTextHandler(says, nil)))(ctx)
	}()
	late := time.AfterFunc(time.Minute, func() { said.Close() })
	defer late.Stop()
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, `level=INFO msg="task of the leader done" task="purge of orders" rows=1`) {
		t.Errorf("the purge logs %q, %v", line, err)
	}
	said.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := store.Order(t.Context(), id, ""); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	var orders int
	if again := send(); again != placed {
		t.Errorf("sent again: %s, want %s", again, placed)
	}
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&orders); err != nil || orders != 0 {
		t.Errorf("%d orders, %v", orders, err)
	}
}
