package sqldb_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestDatabaseThatDemandsTLS opens a server that demands TLS, and a certificate of one user. All connections have it. A
// mistake in the URL is one line that says what to change, and has no password.
func TestDatabaseThatDemandsTLS(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	noTLS, name, has := "switch TLS on in the server", "", ""
	err := testbedtest.OpenSQL(t, testbedtest.Database(t)).QueryRowContext(t.Context(), "SHOW VARIABLES LIKE 'have_ssl'").Scan(&name, &has)
	switch {
	case errors.Is(err, sql.ErrNoRows), has == "YES": // MySQL, and MariaDB from 11.4 on, have TLS with a certificate of their own
		noTLS = "failed to verify certificate"
	case err != nil:
		t.Fatal(err)
	}
	for _, e := range []struct{ scheme, server, cipher, without, noTLS string }{
		{"mysql://", testbedtest.SecureMariaDB(t, c), "SHOW STATUS LIKE 'Ssl_cipher'", testbedtest.Database(t), noTLS},
		{"postgres://", testbedtest.SecurePostgres(t, c), "SELECT '', cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()", testbedtest.Postgres(t), "switch TLS on in the server"},
	} {
		t.Run(e.scheme, func(t *testing.T) {
			t.Parallel()
			demandsTLS(t, c, other, e.scheme, e.server, e.cipher, e.without, e.noTLS)
		})
	}
}

// demandsTLS opens a server in several ways. The last database has no TLS, or another authority: noTLS is its error.
func demandsTLS(t *testing.T, c, other testbedtest.Certificates, scheme, server, showCipher, without, noTLS string) {
	t.Helper()
	url := func(user, params string) string {
		return scheme + user + ":" + testbedtest.EscapedPassword + "@" + server + "?" + params
	}
	for _, url := range []string{url("shop", c.Server()), url("certified", c.Both())} {
		d, err := sqldb.Open(t.Context(), url, sqldb.AccessCreate)
		if err != nil {
			t.Fatal(err)
		}
		if want := scheme + server; d.Address != want {
			t.Errorf("the address is %s, want %s", d.Address, want)
		}
		for _, connector := range []driver.Connector{d.Usual, d.Single, d.Unhurried} {
			pool := sql.OpenDB(connector)
			defer pool.Close()
			var name, cipher string
			if err := pool.QueryRowContext(t.Context(), showCipher).Scan(&name, &cipher); err != nil || cipher == "" {
				t.Errorf("cipher %q, %v", cipher, err)
			}
		}
	}
	wrong := strings.Replace(url("shop", c.Server()), "p%40", "p", 1)
	for url, want := range map[string]string{
		url("shop", ""):                 "whether the server demands tls-ca=FILE",
		url("certified", c.Server()):    "or tls-cert=FILE and tls-key=FILE too",
		url("shop", "tls=true"):         "give the authority of the server's certificate by tls-ca=FILE",
		url("shop", other.Server()):     "give the authority of the server's certificate by tls-ca=FILE",
		url("certified", c.With(other)): "tls-cert=FILE",
		wrong:                           "check the user, the password",
		url("shop", "tls-verify=no"):    "unknown parameter tls-verify: want tls=true, tls-ca=FILE",
		without + "?tls=true":           noTLS,
	} {
		_, err := sqldb.Open(t.Context(), url, sqldb.AccessCreate)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		} else if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "ss/") || strings.Contains(text, "ss%2F") {
			t.Errorf("the error has several lines, or the password: %s", text)
		}
	}
}
