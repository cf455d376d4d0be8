package telemetry

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/platform/redisx"
)

// InstrumentRedis makes rdb record a span for every command and pipeline of a trace, and metrics of its connection pool,
// which are labeled with the name. The spans name the command or the script but not its arguments, which hold keys and
// owners. A command outside of a trace, such as a poll, has no span. Call it once per client, before the first command.
func InstrumentRedis(rdb redis.UniversalClient, name string, t *Telemetry) error {
	rdb.AddHook(redisSpans{t.TracerProvider.Tracer(scope)})
	return watchPool(t.MeterProvider, name, func() (idle, used int, timeouts int64) {
		s := rdb.PoolStats()
		return int(s.IdleConns), int(s.TotalConns) - int(s.IdleConns), int64(s.Timeouts)
	})
}

// redisSpans is a hook.
type redisSpans struct{ tracer trace.Tracer }

// DialHook implements [redis.Hook]: the pool dials outside of any request.
func (redisSpans) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements [redis.Hook].
func (r redisSpans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !trace.SpanContextFromContext(ctx).IsSampled() || greets(cmd) {
			return next(ctx, cmd)
		}
		name, script := named(cmd)
		attrs := []attribute.KeyValue{semconv.DBOperationName(name)}
		if script != "" {
			name, attrs = name+" "+script, append(attrs, semconv.DBStoredProcedureName(script))
		}
		return r.measure(ctx, name, func(ctx context.Context) error { return next(ctx, cmd) }, attrs...)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (r redisSpans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || !trace.SpanContextFromContext(ctx).IsSampled() || greets(cmds[0]) {
			return next(ctx, cmds)
		}
		first, script := named(cmds[0])
		name := strings.TrimSpace("PIPELINE " + first + " " + script)
		return r.measure(ctx, name, func(ctx context.Context) error { return next(ctx, cmds) },
			semconv.DBOperationName("PIPELINE "+first), semconv.DBOperationBatchSize(len(cmds)))
	}
}

// greets reports whether the client sends the command, by itself or first in a pipeline, on each new connection.
func greets(cmd redis.Cmder) bool {
	switch strings.ToUpper(cmd.Name()) {
	case "HELLO", "AUTH", "CLIENT", "SELECT", "READONLY":
		return true
	}
	return false
}

// measure calls f in a span. A nil reply is an answer. A server that does not know a script gets it next. The text of an error may
// repeat arguments, so the span has only its kind.
func (r redisSpans) measure(ctx context.Context, name string, f func(context.Context) error, attrs ...attribute.KeyValue) error {
	ctx, span := r.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(append(attrs, semconv.DBSystemNameRedis)...))
	defer span.End()
	err := f(ctx)
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		kind := semconv.ErrorType(err)
		if _, reply := errors.AsType[redis.Error](err); reply {
			code, _, _ := strings.Cut(err.Error(), " ") // such as WRONGTYPE
			kind = semconv.ErrorTypeKey.String(code)
		}
		span.SetAttributes(kind)
		span.SetStatus(codes.Error, kind.Value.AsString())
	}
	return err
}

// named returns the name of a command in capitals, and that of its script.
func named(cmd redis.Cmder) (name, script string) {
	name = strings.ToUpper(cmd.Name())
	if args := cmd.Args(); name == "EVALSHA" && len(args) > 1 {
		script = redisx.ScriptName(args[1])
	}
	return name, script
}
