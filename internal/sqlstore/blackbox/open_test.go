package blackbox_test

import (
	"context"
	"database/sql"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

func TestOpenNamesTheAddressAndNoPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"mysql://user:secret@127.0.0.1:1/shop",
		"mysql://user:secret@127.0.0.1:port/shop",
		"mysql://user:secret@127.0.0.1:1/",
		"mysql://user:1/secret@127.0.0.1:1/shop", // what a URL means by /, ? and # ends the address
		"mysql://user:/secret@127.0.0.1:1/shop",
		"mysql://user:?secret@127.0.0.1:1/shop",
		"mysql://user:#secret@127.0.0.1:1/shop",
		"mysql://user:secret#@127.0.0.1:1/shop",
		"mysql://user:%secret@127.0.0.1:1/shop",
		"sqlite:" + filepath.Join(t.TempDir(), "no", "such", "folder", "shop.db"),
		"sqlite:",
		"postgres://127.0.0.1/shop",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s, err := sqlstore.Open(ctx, sqlstore.Config{URL: address})
		cancel()
		if err == nil {
			t.Errorf("%s: opened: %v", address, s.Close())
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", address, err)
		}
		if strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s: more than a line: %v", address, err)
		}
	}
}

// A server that has not answered the first request in time, as on a machine that was paused, gets the request again.
func TestOpenAsksAgain(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(testbedtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	server := database.Host
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for n := 0; ; n++ {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { near.Close() })
			if n == 0 {
				continue // and never receives anything
			}
			far, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { far.Close() })
			go func() { _, _ = io.Copy(near, far) }()
			go func() { _, _ = io.Copy(far, near) }()
		}
	}()
	database.Host = listener.Addr().String()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database.String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// Up to SQLite 3.51.2, two connections that write and checkpoint at one time can corrupt a database in WAL mode. Every
// store here uses that mode.
func TestSQLiteResetsItsLogSafely(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	version, safe := "", false
	row := db.QueryRowContext(t.Context(), "SELECT sqlite_version(), sqlite_version() >= '3.51.3'")
	if err := row.Scan(&version, &safe); err != nil {
		t.Fatal(err)
	}
	t.Log("SQLite", version)
	if !safe {
		t.Errorf("SQLite %s, want 3.51.3 or later", version)
	}
}
