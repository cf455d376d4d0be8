package sqlstore

import (
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"
	"gorm.io/plugin/opentelemetry/tracing"
)

// statementSpans returns a plugin that records a span of tp for every statement. Its db.query.text is the statement with its placeholders:
// values, which belong to customers, stay out of the trace. BEGIN and COMMIT
// have no span of their own.
func statementSpans(tp trace.TracerProvider) gorm.Plugin {
	return tracing.NewPlugin(
		tracing.WithTracerProvider(tp),
		tracing.WithoutQueryVariables(),
		tracing.WithoutMetrics(), // they would go to the global provider
	)
}
