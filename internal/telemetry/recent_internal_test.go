package telemetry

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// An instance keeps spans within three bounds, the latest ones, and knows since when it has all of them.
func TestRecentSpansAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		spans int
		every time.Duration // between the ends of two spans; the last one ends now
		text  int
		kept  int
	}{
		"number": {spans: recentSpans + 500, every: time.Microsecond, kept: recentSpans},
		"bytes":  {spans: 100, every: time.Microsecond, text: 1 << 20, kept: 15}, // each is a little more than a MiB
		"time":   {spans: 400, every: time.Second, kept: int(recentFor/time.Second) + 1},
		"none":   {spans: 10, every: time.Second, kept: 10},
	} {
		start := now.Add(-time.Hour)
		r := &recent{since: start}
		for i := range c.spans {
			end := now.Add(time.Duration(i-c.spans+1) * c.every)
			r.OnEnd(tracetest.SpanStub{EndTime: end, Attributes: []attribute.KeyValue{attribute.String("user_agent.original", strings.Repeat("x", c.text))}}.Snapshot())
		}
		since := start
		if c.kept < c.spans {
			since = now.Add(-time.Duration(c.kept) * c.every)
		}
		if len(r.spans) != c.kept || !r.since.Equal(since) || !r.spans[len(r.spans)-1].EndTime().Equal(now) {
			t.Errorf("%s: %d spans since %v before now, the latest of %v; want %d since %v", name, len(r.spans), now.Sub(r.since), now.Sub(r.spans[len(r.spans)-1].EndTime()), c.kept, now.Sub(since))
		}
		for range c.kept {
			r.bytes -= weigh(r.spans[0])
			r.spans = r.spans[1:]
		}
		if r.bytes != 0 {
			t.Errorf("%s: without spans, %d bytes are counted", name, r.bytes)
		}
	}
	// Without new spans, too.
	r := new(recent)
	r.OnEnd(tracetest.SpanStub{EndTime: now.Add(-recentFor - time.Second)}.Snapshot())
	if _, since := r.of("o"); len(r.spans) != 0 || since.IsZero() {
		t.Errorf("%d spans that are older than %v", len(r.spans), recentFor)
	}
}
