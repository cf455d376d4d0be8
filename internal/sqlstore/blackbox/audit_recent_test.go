package blackbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// recentOf returns the audit of what was written of the SKU a since the last one.
func recentOf(t testing.TB, s *sqlstore.Store) stock.Audit {
	t.Helper()
	audits, err := insist(t.Context(), func() ([]stock.Audit, error) { return s.AuditRecent(t.Context(), "a") })
	if err != nil {
		t.Fatal(err)
	}
	return audits[0]
}

// An audit of what was written since the last one finds what an audit of everything finds, and reads only the entries since.
func TestRecentAuditAgreesWithAnAuditOfEverything(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		limited(t, s, "a", "conditional", 10_000, 500)
		limited(t, s, "b", "conditional", 10_000, 500)
		create(t, s, "free", "conditional", 10_000)
		entries := func() (n int64) {
			t.Helper()
			if err := raw.db.Raw("SELECT COUNT(*) FROM ledger WHERE sku = 'a'").Scan(&n).Error; err != nil {
				t.Fatal(err)
			}
			return n
		}
		var checked int64
		for round := range 12 {
			open := place(t, s, time.Hour, "a", "free")
			for n := range round {
				changeOne(t, s, round, n)
			}
			a := recentOf(t, s)
			if (a.RightTo == 0) != (round == 0) || a.Checked != entries()-checked {
				t.Errorf("round %d: %d entries checked of %d new ones, right up to %d", round, a.Checked, entries()-checked, a.RightTo)
			}
			checked = entries()
			if a = recentOf(t, s); a.Checked != 0 || a.RightAt.IsZero() {
				t.Errorf("nothing was written, and %d entries were checked: %+v", a.Checked, a)
			}
			recent, err := s.AuditRecent(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if round%2 == 0 { // an audit of everything is remembered, too
				all, err := s.Audit(t.Context(), "")
				if diff := cmp.Diff(all, recent, cmpopts.IgnoreFields(stock.Audit{}, "RightTo", "RightAt", "Checked")); err != nil || diff != "" {
					t.Errorf("round %d: %v, -all +recent: %s", round, err, diff)
				}
			}
			if err := settle(t.Context(), s, open.ID, order.Confirmed, "p"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An audit of what was written since the last one finds each violation there, and so does each later audit.
func TestRecentAuditFindsViolations(t *testing.T) {
	t.Parallel()
	const entry = "INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) SELECT sku, order_id, "
	for name, damage := range map[string]string{
		"column":        "UPDATE skus SET reserved = reserved + 1, version = version + 1",
		"status":        "UPDATE orders SET status = 'CONFIRMED' WHERE id = @new",
		"status of old": "UPDATE orders SET status = 'CANCELLED' WHERE id = @paid",
		"two ends":      entry + "'CONFIRM', quantity, 0, 0, 0, '', 0 FROM ledger WHERE order_id = @paid AND movement = 'CONFIRM'",
		"token":         entry + "'RESERVE', 0, 0, 0, f, '', 0 FROM ledger, (SELECT 7 AS f UNION SELECT 6) x WHERE order_id = @new ORDER BY f DESC",
		"counter":       "UPDATE customer_usage SET units = units + 1",
		"no entry":      "DELETE FROM ledger WHERE order_id = @new; UPDATE skus SET reserved = reserved - 1",
		"late":          "UPDATE orders SET expires_at = expires_at - 7200000000 WHERE id = @old",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, url string) {
				raw := new(handle)
				s := open(t, url, "one", raw)
				limited(t, s, "a", "conditional", 100, 50)
				old, paid := place(t, s, time.Hour, "a"), place(t, s, time.Hour, "a")
				if a := recentOf(t, s); !a.OK() {
					t.Fatalf("%+v %q", a, a.Broken())
				}
				if err := settle(t.Context(), s, paid.ID, order.Confirmed, "p"); err != nil {
					t.Fatal(err)
				}
				added := place(t, s, time.Hour, "a")
				ids := strings.NewReplacer("@old", "'"+old.ID+"'", "@paid", "'"+paid.ID+"'", "@new", "'"+added.ID+"'")
				for statement := range strings.SplitSeq(ids.Replace(damage), "; ") {
					if err := raw.db.Exec(statement).Error; err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					a := recentOf(t, s)
					if a.OK() {
						t.Errorf("%+v", a)
					}
					if everything := auditOf(t, s, "a"); everything.OK() {
						t.Errorf("of everything: %+v", everything)
					}
				}
			})
		})
	}
}

// The sums of more SKUs than one statement has parameters for are kept.
func TestAuditOfManySKUsIsRemembered(t *testing.T) {
	t.Parallel()
	const skus = 4200 // of 8 parameters each
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		rows := make([]string, skus)
		for i := range rows {
			rows[i] = fmt.Sprintf("('%d', 'conditional', 0, 0, 1, 0, '', 0)", i)
		}
		err := raw.db.Exec("INSERT INTO skus (sku, strategy, on_hand, reserved, version, fence, fence_owner, created_at) VALUES " + strings.Join(rows, ", ")).Error
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			audits, err := s.AuditRecent(t.Context(), "")
			if err != nil || len(audits) != skus {
				t.Fatalf("%d audits, %v", len(audits), err)
			}
			for _, a := range audits {
				if a.RightAt.IsZero() != (round == 0) {
					t.Fatalf("round %d: %+v", round, a)
				}
			}
		}
	})
}

// An audit that cannot keep its sums says so, unless the database does not let its user.
func TestAuditThatCannotRememberFails(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 1)
		if err := raw.db.Exec("ALTER TABLE audits ADD COLUMN other INTEGER NOT NULL DEFAULT 0 CHECK (other > 0)").Error; err != nil {
			t.Fatal(err)
		}
		for name, audit := range map[string]func(context.Context, string) ([]stock.Audit, error){"recent": s.AuditRecent, "everything": s.Audit} {
			if _, err := audit(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "store what the audit found right: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A user who may only read audits everything each time. With two rights on one table the sums are kept.
func TestAuditByAUserWhoMayOnlyRead(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	create(t, open(t, shopAs(t, server, "owner", rightsOfRows+", CREATE, ALTER"), "one"), "a", "conditional", 1)
	auditor, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: shopAs(t, server, "auditor", "SELECT"), Access: sqlstore.AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	defer auditor.Close()
	second := func() stock.Audit {
		var audits []stock.Audit
		for range 2 {
			if audits, err = auditor.AuditRecent(t.Context(), "a"); err != nil || !audits[0].OK() {
				t.Fatalf("%+v, %v", audits, err)
			}
		}
		return audits[0]
	}
	if a := second(); a.RightTo != 0 || a.Checked != 1 {
		t.Errorf("by a user who may only read: %+v, want all of it checked again", a)
	}
	execAt(t, server, "GRANT INSERT, UPDATE ON "+testbed.DefaultDatabase+".audits TO auditor")
	if a := second(); a.RightTo == 0 || a.Checked != 0 {
		t.Errorf("with the rights to remember: %+v, want nothing checked again", a)
	}
}
