package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

func TestKeysBadCommandLines(t *testing.T) {
	t.Chdir(t.TempDir())
	canary := identity.NewToken().Reveal()
	for _, c := range []struct{ args, want string }{
		{"", "missing command"},
		{"drop", "unknown command"},
		{"create", "--customer"},
		{"create --customer", "customer"},
		{"create --customer=", "--admin"},
		{"create --customer ../x", "customer"},
		{"create --customer c1 --expires 0s", "--expires"},
		{"create --customer c1 --expires 1ms", "1s"},
		{"create --customer c1 --expires -1h", "1s"},
		{"create --customer c1 --expires 99999999h", "expires"},
		{"create --customer c1 --expires soon", "expires"},
		{"create --admin --name \x1b[2J", "name"},
		{"create --admin --name " + strings.Repeat("n", 65), "name"},
		{"create --admin --database shop.db", "sqlite:FILE"},
		{"create --admin c1", "accepts 0 arg(s)"},
		{"list a", "accepts 0 arg(s)"},
		{"list --customer c1", "unknown flag --customer"},
		{"revoke", "want shop keys revoke PREFIX"},
		{"revoke a b", "received 2: want shop keys revoke PREFIX"},
		{"revoke aaaaaaaaaa " + canary, "received 2: want shop keys revoke PREFIX"},
		{"create " + canary, "accepts 0 arg(s)"},
		{"revoke --json", "want shop keys revoke PREFIX"},
		{"revoke ABCDEFGHIJ", "PREFIX"},
		{"revoke 'OR+1=1", "PREFIX"},
		{"revoke " + canary[:len(canary)-1], "PREFIX"},
		{"revoke --database mysql://u:" + canary + "@h " + canary, "database"},
	} {
		code, out, stderr := call(t, noEnv, append([]string{"keys"}, strings.Fields(c.args)...)...)
		if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, want %q: %s%s", c.args, code, c.want, out, stderr)
		}
		if c.args != "" && c.args != "drop" && strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, canary[20:40]) {
			t.Errorf("%q: want one line without secrets, got %q", c.args, stderr)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 0 {
		t.Errorf("a refused command has left %v, %v", files, err)
	}
}

// keyJSON is a key as --json prints it.
type keyJSON struct {
	Key       string
	Prefix    string
	Customer  string `json:"customer_id"`
	Admin     bool
	Name      string
	State     identity.State
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	RevokedAt time.Time `json:"revoked_at"`
}

var keyText = regexp.MustCompile(`^shop_[a-z2-7]{10}_[a-z2-7]{56}\n$`)

// The first key of a new database, and its whole life, from the command line alone.
func TestKeyIsCreatedListedAndRevoked(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testLifeOfAKey(t, "sqlite:"+t.TempDir()+"/shop.db") })
	t.Run("mariadb", func(t *testing.T) { testLifeOfAKey(t, testbedtest.Database(t)) })
}

func testLifeOfAKey(t *testing.T, database string) {
	t.Helper()
	env := func(k string) string {
		return map[string]string{"SHOP_DATABASE": database, "SHOP_ADMIN": "true", "SHOP_EXPIRES": "1s"}[k]
	}
	migrated(t, database)
	var texts []string
	for _, args := range [][]string{
		{"--admin", "--name", "first of all"},
		{"--customer", "c1", "--expires", "720h", "--name", "till 3"},
	} {
		code, out, stderr := call(t, env, append([]string{"keys", "create"}, args...)...)
		if code != 0 || !keyText.MatchString(out) || strings.Count(stderr, "\n") != 1 {
			t.Fatalf("exit code %d: %q, %q", code, out, stderr)
		}
		text := strings.TrimSpace(out)
		if strings.Contains(stderr, text[16:]) || !strings.Contains(stderr, text[5:15]) {
			t.Errorf("want the prefix and no secret: %s", stderr)
		}
		texts = append(texts, text)
	}
	admin, customer := texts[0], texts[1]

	service := keysOf(t, database)
	for text, want := range map[string]identity.Caller{
		admin:    {Admin: true, KeyPrefix: admin[5:15]},
		customer: {Customer: "c1", KeyPrefix: customer[5:15]},
	} {
		if c, err := service.Authenticate(t.Context(), text); err != nil || c != want {
			t.Errorf("%+v, %v, want %+v", c, err, want)
		}
	}

	code, out, stderr := call(t, env, "keys", "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 3 || stderr != "" {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	for i, want := range [][]string{{admin[5:15], "admin", "ACTIVE", "first of all"}, {customer[5:15], "customer c1", "ACTIVE", "till 3"}} {
		for _, w := range want {
			if !strings.Contains(lines[i+1], w) {
				t.Errorf("line %d has no %q:\n%s", i+1, w, out)
			}
		}
	}

	code, out, stderr = call(t, env, "keys", "revoke", customer[5:15])
	if code != 0 || !strings.Contains(out, customer[5:15]+" was revoked at ") || !strings.Contains(out, "5s") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if _, again, _ := call(t, env, "keys", "revoke", customer); again != out { // by the whole of the key
		t.Errorf("revoked again: %s", again)
	}
	if _, err := keysOf(t, database).Authenticate(t.Context(), customer); !errors.Is(err, identity.ErrUnauthenticated) {
		t.Errorf("the revoked key: %v", err)
	}
	code, _, stderr = call(t, env, "keys", "revoke", "aaaaaaaaaa")
	if code != 1 || !strings.Contains(stderr, "no such key") || !strings.Contains(stderr, "aaaaaaaaaa") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	testKeysInJSON(t, env, customer, texts)
}

func testKeysInJSON(t *testing.T, env func(string) string, revoked string, texts []string) {
	t.Helper()
	code, out, stderr := call(t, env, "keys", "create", "--customer", "c2", "--admin", "--expires", "1h", "--json")
	var made keyJSON
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || stderr != "" {
		t.Fatalf("exit code %d: %v: %s%s", code, err, out, stderr)
	}
	if made.Key[5:15] != made.Prefix || !made.Admin || made.Customer != "c2" || made.ExpiresAt.Sub(made.CreatedAt) != time.Hour {
		t.Errorf("%s", out)
	}
	code, out, stderr = call(t, env, "keys", "list", "--json")
	var list struct{ Keys []keyJSON }
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list.Keys) != 3 {
		t.Fatalf("exit code %d: %v: %s%s", code, err, out, stderr)
	}
	if k := list.Keys[1]; k.Prefix != revoked[5:15] || k.State != identity.Revoked || k.RevokedAt.IsZero() || k.Key != "" {
		t.Errorf("%+v", k)
	}
	for _, text := range append(texts, made.Key) {
		if strings.Contains(out, text[16:]) {
			t.Errorf("the list has a secret:\n%s", out)
		}
	}
	code, out, _ = call(t, env, "keys", "revoke", "--json", made.Prefix)
	var k keyJSON
	if err := json.Unmarshal([]byte(out), &k); code != 0 || err != nil || k.State != identity.Revoked {
		t.Errorf("exit code %d: %v: %s", code, err, out)
	}
}

// keysOf recognizes the keys in a database as an instance that has just started does.
func keysOf(t *testing.T, database string) *identity.Service {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	service, err := identity.New(store, identity.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A key that nobody could read is named, so that it can be revoked.
func TestKeyThatCannotBeShown(t *testing.T) {
	database := "sqlite:" + t.TempDir() + "/shop.db"
	migrated(t, database)
	for _, format := range []string{"--json", "--json=false"} {
		var stderr bytes.Buffer
		if code := run(t.Context(), noEnv, closedPipe{}, &stderr, "keys", "create", "--admin", format, "--database", database); code != 1 {
			t.Errorf("%s: exit code %d", format, code)
		}
		prefix := regexp.MustCompile(`shop keys revoke ([a-z2-7]{10})`).FindStringSubmatch(stderr.String())
		if prefix == nil {
			t.Fatalf("%s: %s", format, stderr.String())
		}
		if code, _, stderr := call(t, noEnv, "keys", "revoke", prefix[1], "--database", database); code != 0 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	}
}
