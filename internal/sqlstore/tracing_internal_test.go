package sqlstore

import (
	"errors"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestSummaryOfStatements(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT 1": "SELECT",
		"SELECT a, b FROM `orders` JOIN order_lines l ON l.id = id WHERE a = ? FOR UPDATE":                          "SELECT orders order_lines",
		"insert into orders(id) values (?), (?)":                                                                    "INSERT orders",
		"UPDATE skus SET reserved = (SELECT SUM(n) FROM (SELECT n FROM ledger) x)":                                  "UPDATE skus ledger",
		"DELETE FROM timeouts WHERE id = ?":                                                                         "DELETE timeouts",
		"INSERT INTO orders (id) VALUES (?) ON DUPLICATE KEY UPDATE id = id; DELETE FROM timeouts; UPDATE \"skus\"": "INSERT orders; DELETE timeouts; UPDATE skus",
		"SET STATEMENT max_statement_time = 0.200 FOR SELECT * FROM skus FOR UPDATE":                                "SELECT skus",
		"SET LOCAL statement_timeout = 200; SELECT * FROM skus FOR UPDATE; SET LOCAL statement_timeout TO DEFAULT":  "SELECT skus",
	} {
		if got := summary(otelsql.MethodConnExec, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := summary(otelsql.MethodTxCommit, ""); got != "COMMIT" {
		t.Errorf("a commit: %q", got)
	}
}

// The text of an error of a database may repeat a value of the statement.
func TestSpansOfStatementsShowNoErrorText(t *testing.T) {
	t.Parallel()
	ended := tracetest.NewSpanRecorder()
	_, span := reticent{sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended))}.Tracer("test").Start(t.Context(), "INSERT orders")
	span.RecordError(errors.New("incorrect integer value: 'secret'"))
	span.SetStatus(codes.Error, "") // as otelsql does
	span.End()
	got := ended.Ended()[0]
	want := []attribute.KeyValue{attribute.String("error.type", "*errors.errorString")}
	if diff := cmp.Diff(want, got.Attributes(), cmp.AllowUnexported(attribute.Value{})); diff != "" || len(got.Events()) > 0 || got.Status().Description != "" {
		t.Errorf("attributes (-want +got):\n%s\nevents %v, status %v", diff, got.Events(), got.Status())
	}
}
