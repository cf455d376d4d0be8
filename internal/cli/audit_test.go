package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// The verdict is the exit code, and the JSON form has it too.
func TestAuditByCommand(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + t.TempDir() + "/shop.db"
	store := openStore(t, database)
	for _, sku := range []string{"a", "b"} {
		if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: "conditional", OnHand: 5}); err != nil {
			t.Fatal(err)
		}
	}
	audited := func(wantCode int, args ...string) (out, stderr string) {
		t.Helper()
		code, out, stderr := call(t, noEnv, append([]string{"audit", "--database", database}, args...)...)
		if code != wantCode {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, code, wantCode, out, stderr)
		}
		return out, stderr
	}
	inJSON := func(wantCode int) (body httpapi.Audit) {
		t.Helper()
		out, _ := audited(wantCode, "--json")
		if err := json.Unmarshal([]byte(out), &body); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return body
	}
	if body := inJSON(0); !body.Ok || len(body.Skus) != 2 || body.Skus[0].Stocked != 5 {
		t.Errorf("%+v", body)
	}
	if out, stderr := audited(0); strings.Count(out, "ok\n") != 2 || stderr != "" {
		t.Errorf("%s%s", out, stderr)
	}

	if _, err := testbedtest.OpenSQL(t, database).ExecContext(t.Context(), "UPDATE skus SET on_hand = 4 WHERE sku = 'b'"); err != nil {
		t.Fatal(err)
	}
	if body := inJSON(1); body.Ok || !body.Skus[0].Ok || body.Skus[1].Ok || body.Skus[1].LostUpdates != 1 {
		t.Errorf("%+v", body)
	}
	if out, stderr := audited(1); strings.Count(out, "ok\n") != 1 || !strings.Contains(out, "b: on_hand differs from the ledger: column 4, ledger 5") || !strings.Contains(stderr, "1 of 2 SKUs") {
		t.Errorf("%s%s", out, stderr)
	}
}
