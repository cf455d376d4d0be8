package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/otel/attribute"
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
		otelsql.WithTracerProvider(reticent{tp}),
		otelsql.WithMeterProvider(noop.NewMeterProvider()), // the default is the global one
		otelsql.WithAttributes(semconv.DBSystemNameKey.String(dialect)),
		otelsql.WithSpanNameFormatter(func(_ context.Context, m otelsql.Method, query string) string { return summary(m, query) }),
		otelsql.WithAttributesGetter(func(_ context.Context, m otelsql.Method, query string, _ []driver.NamedValue) []attribute.KeyValue {
			is := summary(m, query)
			operation, _, _ := strings.Cut(is, " ")
			return []attribute.KeyValue{semconv.DBOperationName(operation), semconv.DBQuerySummary(is)}
		}),
		otelsql.WithSpanOptions(otelsql.SpanOptions{
			DisableErrSkip:       true, // the driver asks for the statement to be prepared
			OmitConnResetSession: true,
			OmitConnPrepare:      true,
			OmitRows:             true,
			RecordError:          func(err error) bool { return !sqldb.Is(err, sqldb.Duplicate) }, // an answer
			SpanFilter: func(ctx context.Context, _ otelsql.Method, _ string, _ []driver.NamedValue) bool {
				return trace.SpanContextFromContext(ctx).IsSampled()
			},
		}))
}

// summary returns the operations of a statement with their tables, such as "INSERT orders; UPDATE skus".
func summary(m otelsql.Method, query string) string {
	switch m { //nolint:exhaustive // Others have a query, or the name of the method.
	case otelsql.MethodConnBeginTx:
		return "BEGIN"
	case otelsql.MethodTxCommit:
		return "COMMIT"
	case otelsql.MethodTxRollback:
		return "ROLLBACK"
	}
	var is strings.Builder
	begins, table := true, false // the next word is an operation, or a table
	setting := false             // how long the statement may take
	for word := range strings.FieldsSeq(query) {
		upper := strings.ToUpper(word)
		if setting = setting || begins && upper == "SET"; setting {
			begins = upper == "FOR" || strings.HasSuffix(word, ";")
			setting = !begins
			continue
		}
		switch {
		case begins:
			if is.Len() > 0 {
				is.WriteString("; ")
			}
			is.WriteString(upper)
			table = upper == "UPDATE"
		case table:
			name, _, _ := strings.Cut(word, "(") // columns, or a subquery
			if name = strings.Trim(name, "`\",;)"); name != "" {
				is.WriteString(" " + name)
			}
			table = false
		default:
			table = upper == "INTO" || upper == "FROM" || upper == "JOIN"
		}
		begins = strings.HasSuffix(word, ";")
	}
	if is.Len() == 0 {
		return string(m)
	}
	return is.String()
}

// reticent is a provider whose spans keep the kind of an error instead of its text, which may repeat values.
type reticent struct{ trace.TracerProvider }

// Tracer implements [trace.TracerProvider].
func (r reticent) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return reticentTracer{r.TracerProvider.Tracer(name, options...)}
}

type reticentTracer struct{ trace.Tracer }

// Start implements [trace.Tracer].
func (t reticentTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := t.Tracer.Start(ctx, name, options...) //nolint:spancheck // otelsql ends it.
	return ctx, reticentSpan{span}                     //nolint:spancheck // otelsql ends it.
}

type reticentSpan struct{ trace.Span }

// RecordError implements [trace.Span].
func (s reticentSpan) RecordError(err error, _ ...trace.EventOption) {
	s.SetAttributes(semconv.ErrorType(err))
}
