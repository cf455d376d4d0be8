package telemetry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// WatchDatabase registers metrics of pools of connections to the database. stats returns the pools by name.
func WatchDatabase(mp metric.MeterProvider, stats func() map[string]sql.DBStats) error {
	m := mp.Meter(scope)
	count, err1 := newDbClientConnectionCount(m)
	most, err2 := newDbClientConnectionMax(m)
	waits, err3 := newDbConnectionWaits(m)
	waited, err4 := newDbConnectionWaitTime(m)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("telemetry: pools of the database: %w", err)
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, s := range stats() {
			pool := semconv.DBClientConnectionPoolName(name)
			observeConnections(o, count, pool, s.Idle, s.InUse)
			with := metric.WithAttributes(pool)
			if s.MaxOpenConnections > 0 {
				o.ObserveInt64(most, int64(s.MaxOpenConnections), with)
			}
			o.ObserveInt64(waits, s.WaitCount, with)
			o.ObserveFloat64(waited, s.WaitDuration.Seconds(), with)
		}
		return nil
	}, count, most, waits, waited)
	return err
}

// watchPool registers metrics of the pool of a Redis client.
func watchPool(mp metric.MeterProvider, name string, read func() (idle, used int, timeouts int64)) error {
	m := mp.Meter(scope)
	count, err1 := newDbClientConnectionCount(m)
	timeouts, err2 := newDbClientConnectionTimeouts(m)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("telemetry: instrument redis: %w", err)
	}
	pool := semconv.DBClientConnectionPoolName(name)
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		idle, used, late := read()
		observeConnections(o, count, pool, idle, used)
		o.ObserveInt64(timeouts, late, metric.WithAttributes(pool))
		return nil
	}, count, timeouts)
	return err
}

func observeConnections(o metric.Observer, count metric.Int64Observable, pool attribute.KeyValue, idle, used int) {
	o.ObserveInt64(count, int64(idle), metric.WithAttributes(pool, semconv.DBClientConnectionStateIdle))
	o.ObserveInt64(count, int64(used), metric.WithAttributes(pool, semconv.DBClientConnectionStateUsed))
}
