package sqlstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
)

// An audit of large books takes longer than any other statement may. The table is one here that
// gives its rows late.
func TestAuditTakesItsTime(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	s, db := open(t, url, "one"), rawDB(t, url)
	create(t, s, "a", "conditional", 3)
	for _, statement := range []string{
		"RENAME TABLE skus TO quick",
		"CREATE VIEW skus AS SELECT * FROM quick WHERE SLEEP(4) = 0", // the limit of others is 3 s
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if audits, err := s.Audit(t.Context(), "a"); err != nil || len(audits) != 1 || !audits[0].OK() || audits[0].Stocked != 3 {
		t.Fatalf("%+v, %v", audits, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Audit(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want the end of the context", err)
	}
}
