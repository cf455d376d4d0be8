package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/platform/sqldb"
)

// traced returns a pool of c's connections. If tp is not nil, every statement in a sampled span has a span of its own.
// Its db.query.text is the statement with its placeholders: values, which belong to customers, stay out of the trace. A
// statement outside of a sampled trace, such as a poll, has no span, and so costs next to nothing.
func traced(c driver.Connector, dialect string, tp trace.TracerProvider) *sql.DB {
	if tp == nil {
		return sql.OpenDB(c)
	}
	return otelsql.OpenDB(c,
		otelsql.WithTracerProvider(tp),
		otelsql.WithMeterProvider(noop.NewMeterProvider()), // the default is the global one
		otelsql.WithAttributes(semconv.DBSystemNameKey.String(dialect)),
		otelsql.WithSpanNameFormatter(spanName),
		otelsql.WithSpanOptions(otelsql.SpanOptions{
			DisableErrSkip:       true, // the driver asks for the statement to be prepared
			OmitConnResetSession: true,
			OmitConnPrepare:      true,
			OmitRows:             true,
			RecordError:          func(err error) bool { return !sqldb.Is(err, sqldb.Duplicate) }, // its text repeats the key
			SpanFilter: func(ctx context.Context, _ otelsql.Method, _ string, _ []driver.NamedValue) bool {
				return trace.SpanContextFromContext(ctx).IsSampled()
			},
		}))
}

// spanName is the first word of the statement, in capitals as SQL has it.
func spanName(_ context.Context, m otelsql.Method, query string) string {
	switch m {
	case otelsql.MethodConnBeginTx:
		return "BEGIN"
	case otelsql.MethodTxCommit:
		return "COMMIT"
	case otelsql.MethodTxRollback:
		return "ROLLBACK"
	default:
		if words := strings.Fields(query); len(words) > 0 {
			return words[0]
		}
		return string(m)
	}
}
