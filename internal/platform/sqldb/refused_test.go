package sqldb_test

import (
	"net/url"
	"strings"
	"testing"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A database that cannot be opened is one line that says once what to change, and has no password.
func TestDatabaseThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	mysql, postgres := testbedtest.Database(t), testbedtest.Postgres(t)
	at, exec := mysql[:strings.LastIndex(mysql, "/")], testbedtest.OpenSQL(t, mysql)
	for _, statement := range []string{"CREATE USER IF NOT EXISTS lodger", "CREATE USER IF NOT EXISTS guarded IDENTIFIED BY 'secret'"} {
		if _, err := exec.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user, at string) string { return strings.Replace(at, "root@", user+"@", 1) }
	certificates := testbedtest.NewCertificates(t)
	secure := testbedtest.SecurePostgres(t, certificates)
	host, name, _ := strings.Cut(secure, "/")
	end, other := strings.LastIndex(postgres, "/"), strings.TrimPrefix(at, "mysql://root@")
	for address, want := range map[string]string{
		at + "/nowhere":      "check the name of the database, or create it by CREATE DATABASE and shop migrate --create",
		postgres + "nowhere": "check the name of the database, or create it by CREATE DATABASE and shop migrate --create",
		as("lodger", mysql):  "check the name of the database, and that the user has rights in it",
		strings.Replace(at, "mysql://root", "postgres://shop", 1) + "/shop": "check that a server of this engine listens at the port",
		"mysql://root@" + postgres[strings.Index(postgres, "@")+1:]:         "check that the server runs, and that a server of this engine listens at the port",
		as("guarded:secret2", at) + ",127.0.0.1:1/shop":                     "check the user, the password, and whether",
		"postgres://shop:secret2@" + host + ",127.0.0.1:1/" + name:          "check the user, the password, and whether",
		"postgres://shop:secret2@127.0.0.1:1," + secure:                     "check the user, the password, and whether",
		postgres[:end] + "," + other + postgres[end:]:                       "check that a server of this engine listens at the port",
		"postgres://" + url.UserPassword("shop", testbedtest.Password).String() + "@" + host + "," + other + "/" + name + "?tls-ca=" + certificates.CA: "switch TLS on in the server",
		"mysql://root@no-such-host.invalid:3306/shop":       "check the name of the host",
		"postgres://shop:secret2@no-such-host.invalid/shop": "check the name of the host",
		postgres + "?sslmode=disable":                       "unknown parameter sslmode: want tls=true, tls-ca=FILE, or tls-cert=FILE and tls-key=FILE",
		mysql + "?charset=utf8":                             "unknown parameter charset: want",
		"postgres://shop:a@b/c?secret2=d@" + secure:         "want postgres://USER:PASSWORD@HOST",
	} {
		_, err := sqldb.Open(t.Context(), address, sqldb.AccessCreate)
		if err == nil || strings.Count(err.Error(), want) != 1 || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret2") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
		if hint := sqldb.Hint(err); hint != "" && !strings.HasPrefix(hint, want) {
			t.Errorf("%s: the hint is %q, want %q", address, hint, want)
		}
	}
}
