package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// placed is what a test reads of an order.
type placed struct {
	ID, Status string
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// eventually places an order of one unit of the SKU a as soon as there is one.
func (r *instance) eventually(t *testing.T) (o placed) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		status, answer := r.send(t, "POST", "/api/v1/orders", oneUnit)
		if status == http.StatusCreated {
			decode(t, answer, &o)
			return o
		}
		if !strings.Contains(answer, "out-of-stock") && !later(status, answer) || time.Now().After(end) {
			t.Fatalf("status %d: %s", status, answer)
		}
		<-time.After(2 * time.Millisecond) // leaves the instance some time for its timers
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Orders whose time ends while no instance runs expire when the next instance starts, also without Redis and another server.
func TestOrdersExpireAcrossARestart(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	r := start(t, "--database", database, "--order-ttl", "1s")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"conditional"}`)
	first := r.eventually(t)
	r.stop()
	<-r.exited // which takes longer than the order has
	again := start(t, "--database", database)
	again.eventually(t)
	var history struct {
		Movements []struct {
			Movement string
			At       time.Time
		}
	}
	decode(t, again.want(t, http.StatusOK, "GET", "/api/v1/orders/"+first.ID+"/movements", ""), &history)
	for _, m := range history.Movements {
		if m.Movement == "RELEASE" && !m.At.Before(first.ExpiresAt) {
			return
		}
	}
	t.Errorf("%+v: want a release, not before %v", history, first.ExpiresAt)
}

// A canary places orders, and leaves their expiry to others.
func TestACanaryExpiresNothing(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	canary := start(t, "--database", database, "--order-ttl", "1s", "--instance", "on-trial", "--canary")
	start(t, "--database", database, "--instance", "base")
	expiredBy(t, canary, database, "base")
}

// An instance in a partition of its own expires its own orders, whoever else is there.
func TestALaneExpiresItsOwnOrders(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	start(t, "--database", database, "--instance", "base")
	trial := start(t, "--database", database, "--order-ttl", "1s", "--instance", "on-trial", "--partition", "trial")
	expiredBy(t, trial, database, "on-trial")
}

// expiredBy places orders through r and fails the test unless the named instance
// alone expires them.
func expiredBy(t *testing.T, r *instance, database, instance string) {
	t.Helper()
	const orders = 5
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":5,"strategy":"conditional"}`)
	for range 2 * orders {
		r.eventually(t)
	}
	db := testbedtest.OpenSQL(t, database)
	var all, by int
	query := "SELECT COUNT(*), SUM(instance = ?) FROM ledger WHERE movement = 'RELEASE'"
	if err := db.QueryRowContext(t.Context(), query, instance).Scan(&all, &by); err != nil || all < orders || by != all {
		t.Errorf("%d of %d orders were expired by %s, %v", by, all, instance, err)
	}
}
