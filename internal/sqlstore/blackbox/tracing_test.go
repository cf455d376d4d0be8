package blackbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/sqlstore"
)

// TestEveryStatementOfATraceHasASpan uses a lock, timers and keys, outside of any span and inside one.
func TestEveryStatementOfATraceHasASpan(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ended := tracetest.NewSpanRecorder()
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended))
		work := tracedWork(t, opened(t, sqlstore.Config{URL: url, Tracer: tp}))
		if err := work(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if got := ended.Ended(); len(got) > 0 {
			t.Errorf("%d spans of what is part of no trace, the first: %s", len(got), got[0].Name())
		}
		ctx, span := tp.Tracer("test").Start(t.Context(), "work")
		if err := work(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		span.End()
		texts := new(strings.Builder)
		for _, s := range ended.Ended() {
			if s.SpanContext().TraceID() != span.SpanContext().TraceID() {
				t.Errorf("%s is in a trace of its own", s.Name())
			}
			attributes := s.Attributes()
			for _, e := range s.Events() {
				attributes = append(attributes, e.Attributes...)
			}
			for _, a := range attributes {
				if a.Key == "db.query.text" {
					texts.WriteString(a.Value.AsString())
				}
				if strings.Contains(a.Value.String(), "secret") {
					t.Errorf("%s shows a value: %s", s.Name(), a.Value.String())
				}
			}
		}
		for _, table := range []string{"leases", "timeouts", "api_keys"} {
			if !strings.Contains(texts.String(), table) {
				t.Errorf("no statement with %s has a span", table)
			}
		}
	})
}

// tracedWork returns what takes a lock, counts timers, and creates a key twice, all by that name.
func tracedWork(t *testing.T, s *sqlstore.Store) func(ctx context.Context, name string) error {
	t.Helper()
	locks, err := s.Locks(t.Context(), sqllock.Config{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	timers, err := s.Timers()
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, name string) error {
		lease, err := locks.TryAcquire(ctx, name)
		if err != nil {
			return err
		}
		if err := lease.Release(ctx); err != nil {
			return err
		}
		if _, err := timers.Count(ctx); err != nil {
			return err
		}
		key := identity.Key{Prefix: "secret" + name, Customer: "c"}
		if _, err := s.CreateKey(ctx, key, [32]byte{1}, 0); err != nil {
			return err
		}
		if _, err := s.CreateKey(ctx, key, [32]byte{2}, 0); err == nil {
			return errors.New("two keys have one prefix")
		}
		return nil
	}
}
