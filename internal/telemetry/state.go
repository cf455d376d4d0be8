package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/metric"
)

// instrument is an observable metric. It is a counter if its name ends in _total, and otherwise a gauge.
type instrument struct{ name, what string }

// watchState registers the instruments of a state. For each collection of metrics, read returns their values, in the
// same order.
func watchState(mp metric.MeterProvider, of string, all []instrument, read func() []int64) error {
	m := mp.Meter(scope)
	to, list := make([]metric.Int64Observable, len(all)), make([]metric.Observable, len(all))
	var errs []error
	for i, each := range all {
		var err error
		if strings.HasSuffix(each.name, "_total") {
			to[i], err = m.Int64ObservableCounter(each.name, metric.WithDescription(each.what))
		} else {
			to[i], err = m.Int64ObservableGauge(each.name, metric.WithDescription(each.what))
		}
		errs, list[i] = append(errs, err), to[i]
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, value := range read() {
			o.ObserveInt64(to[i], value)
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
