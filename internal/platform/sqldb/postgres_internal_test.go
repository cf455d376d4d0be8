package sqldb

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgconn"
)

// The variables of the environment that programs for PostgreSQL read change no connection.
func TestEnvironmentDoesNotChangeConnections(t *testing.T) {
	config := func(t *testing.T) *pgconn.Config {
		t.Helper()
		configs, _, _, err := parsePostgres("postgres://me:secret@one:1/shop?tls=true")
		if err != nil {
			t.Fatal(err)
		}
		return configs[0]
	}
	want := config(t)
	for _, set := range []string{
		"PGHOST=other", "PGPORT=other", "PGDATABASE=other", "PGUSER=other", "PGPASSWORD=other", "PGPASSFILE=/nowhere", "PGAPPNAME=other",
		"PGCONNECT_TIMEOUT=other", "PGSSLMODE=other", "PGSSLKEY=/nowhere", "PGSSLCERT=/nowhere", "PGSSLCERTMODE=disable", "PGSSLSNI=0",
		"PGSSLROOTCERT=/nowhere", "PGSSLPASSWORD=other", "PGSSLNEGOTIATION=direct", "PGTARGETSESSIONATTRS=standby", "PGSERVICE=other",
		"PGSERVICEFILE=/nowhere", "PGTZ=other", "PGOPTIONS=-c fsync=off", "PGMINPROTOCOLVERSION=3.2", "PGMAXPROTOCOLVERSION=3.2",
		"PGCHANNELBINDING=require", "PGREQUIREAUTH=md5",
	} {
		name, value, _ := strings.Cut(set, "=")
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			functions := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type().Kind() == reflect.Func }, cmp.Ignore())
			if diff := cmp.Diff(want, config(t), functions, cmpopts.IgnoreUnexported(pgconn.Config{}), cmpopts.IgnoreFields(pgconn.Config{}, "TLSConfig")); diff != "" {
				t.Errorf("-without +with: %s", diff)
			}
		})
	}
}
