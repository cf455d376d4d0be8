package telemetry

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
)

// InstrumentRedis makes rdb record a span for every command and pipeline, and
// metrics of its connection pool and of its commands. The spans name the
// command but not its arguments, which hold keys and owners. Call it once per
// client, before the first command.
func InstrumentRedis(rdb redis.UniversalClient, t *Telemetry) error {
	err := errors.Join(
		redisotel.InstrumentTracing(rdb,
			redisotel.WithTracerProvider(t.TracerProvider),
			redisotel.WithDBStatement(false),
			redisotel.WithCallerEnabled(false), // a stack walk per command
			redisotel.WithDialFilter(true),     // the pool dials outside of any request
		),
		redisotel.InstrumentMetrics(rdb,
			redisotel.WithMeterProvider(t.MeterProvider),
			redisotel.WithSemConvCompliantMetrics(true),
		),
	)
	if err != nil {
		return fmt.Errorf("telemetry: instrument redis: %w", err)
	}
	return nil
}
