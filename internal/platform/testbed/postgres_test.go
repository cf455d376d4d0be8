package testbed_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Open sessions of a server, which are processes of their own, are paused with it. It can be killed then.
func TestPostgresIsPausedWithItsSessions(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartPostgres(t, testbed.PostgresConfig{})
	var sessions [2]*pgconn.PgConn
	for i := range sessions {
		conn, err := pgconn.Connect(t.Context(), server.URL()+"?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		sessions[i] = conn
		defer conn.Close(t.Context())
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	if err := sessions[0].Exec(soon, "SELECT 1").Close(); err == nil {
		t.Error("a session of a paused server answers")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := sessions[1].Exec(t.Context(), "SELECT 1").Close(); err != nil {
		t.Errorf("after the pause: %v", err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("to kill a paused server took %v", took)
	}
}
