package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// constructors make the instruments of a state.
type constructors []func(metric.Meter) (metric.Int64Observable, error)

// watchState registers the instruments of a state. For each collection of metrics, read returns their values, in the
// same order.
func watchState(mp metric.MeterProvider, of string, all constructors, read func() []int64, labels ...attribute.KeyValue) error {
	m := mp.Meter(scope)
	to, list := make([]metric.Int64Observable, len(all)), make([]metric.Observable, len(all))
	var errs []error
	for i, construct := range all {
		var err error
		to[i], err = construct(m)
		errs, list[i] = append(errs, err), to[i]
	}
	with := metric.WithAttributes(labels...)
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, value := range read() {
			o.ObserveInt64(to[i], value, with)
		}
		return nil
	}, list...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("telemetry: %s: %w", of, err)
	}
	return nil
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
