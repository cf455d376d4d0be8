package telemetry

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// These bound the spans that an instance keeps in memory.
const (
	recentSpans = 20_000
	recentBytes = 16 << 20 // as weigh estimates them
	recentFor   = 5 * time.Minute
)

// recent is a [sdktrace.SpanProcessor] that keeps the latest spans.
type recent struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan // guarded by mu; in the order of their ends
	bytes int                     // guarded by mu
	since time.Time               // guarded by mu; all spans that ended after it are kept
}

// OnStart implements [sdktrace.SpanProcessor].
func (*recent) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements [sdktrace.SpanProcessor].
func (r *recent) OnEnd(s sdktrace.ReadOnlySpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans, r.bytes = append(r.spans, s), r.bytes+weigh(s)
	r.trim(s.EndTime())
}

// Shutdown implements [sdktrace.SpanProcessor].
func (*recent) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor].
func (*recent) ForceFlush(context.Context) error { return nil }

// trim removes the spans that are beyond the bounds. It requires mu.
func (r *recent) trim(now time.Time) {
	for len(r.spans) > recentSpans || r.bytes > recentBytes || len(r.spans) > 0 && now.Sub(r.spans[0].EndTime()) > recentFor {
		r.since, r.bytes = r.spans[0].EndTime(), r.bytes-weigh(r.spans[0])
		r.spans[0] = nil // append moves the others to another array
		r.spans = r.spans[1:]
	}
}

// weigh estimates the bytes of a span. A client chooses the length of some of its texts.
func weigh(s sdktrace.ReadOnlySpan) int {
	n := 600 + len(s.Name()) + len(s.Status().Description) + len(s.SpanContext().TraceState().String())
	add := func(each int, attributes []attribute.KeyValue) {
		n += each
		for _, a := range attributes {
			n += 64 + len(a.Value.AsString())
		}
	}
	add(0, s.Attributes())
	for _, l := range s.Links() {
		add(100, l.Attributes)
	}
	for _, e := range s.Events() {
		add(100+len(e.Name), e.Attributes)
	}
	return n
}

// Span is a span of an order.
type Span struct {
	sdktrace.ReadOnlySpan

	// Within is the span of the order that it is a part of: its parent, or one that it has a link to. It is zero if there is none.
	Within trace.SpanID
}

// of returns the spans of an order that are kept, the earliest first: those of the requests and of the batches of timers that placed and changed it,
// and of transactions that it shared with other orders. It also returns since when spans are kept.
func (r *recent) of(order string) (spans []Span, since time.Time) {
	r.mu.Lock()
	r.trim(time.Now())
	all, since := slices.Clone(r.spans), r.since
	r.mu.Unlock()
	f := &family{
		order: order, byID: make(map[trace.SpanID]sdktrace.ReadOnlySpan, len(all)),
		children: make(map[trace.SpanID][]sdktrace.ReadOnlySpan), linked: make(map[trace.SpanID][]sdktrace.ReadOnlySpan), taken: make(map[trace.SpanID]bool),
	}
	for _, s := range all {
		f.byID[s.SpanContext().SpanID()] = s
		f.children[s.Parent().SpanID()] = append(f.children[s.Parent().SpanID()], s)
		for _, l := range s.Links() {
			f.linked[l.SpanContext.SpanID()] = append(f.linked[l.SpanContext.SpanID()], s)
		}
	}
	for _, s := range all {
		if !f.names(s) {
			continue
		}
		for p, ok := f.byID[s.Parent().SpanID()]; ok; p, ok = f.byID[p.Parent().SpanID()] {
			s = p
		}
		f.take(s, trace.SpanID{})
	}
	slices.SortStableFunc(f.spans, func(a, b Span) int { return cmp.Compare(a.StartTime().UnixNano(), b.StartTime().UnixNano()) })
	return f.spans, since
}

// family collects the spans of an order.
type family struct {
	order            string
	byID             map[trace.SpanID]sdktrace.ReadOnlySpan
	children, linked map[trace.SpanID][]sdktrace.ReadOnlySpan // by parent, and by span that they link to
	taken            map[trace.SpanID]bool
	spans            []Span
}

// names reports whether s names the order: it places the order, is a request that changes it, or a batch that has its timer.
func (f *family) names(s sdktrace.ReadOnlySpan) bool {
	method, path := "", ""
	for _, a := range s.Attributes() {
		switch a.Key {
		case orderID:
			return a.Value.AsString() == f.order
		case semconv.HTTPRequestMethodKey:
			method = a.Value.AsString()
		case semconv.URLPathKey:
			path = a.Value.AsString()
		}
	}
	if method == "POST" && strings.HasPrefix(path, "/api/v1/orders/"+f.order+"/") {
		return true
	}
	return slices.ContainsFunc(s.Links(), func(l sdktrace.Link) bool {
		return slices.Contains(l.Attributes, semconv.MessagingMessageID(f.order))
	})
}

// orderID is the attribute with the id of the order that a span places.
const orderID = attribute.Key("order.id")

// take adds s with all that it contains, unless another order is placed there.
func (f *family) take(s sdktrace.ReadOnlySpan, within trace.SpanID) {
	id := s.SpanContext().SpanID()
	if f.taken[id] || slices.ContainsFunc(s.Attributes(), func(a attribute.KeyValue) bool { return a.Key == orderID && a.Value.AsString() != f.order }) {
		return
	}
	f.add(s, within)
	for _, c := range f.children[id] {
		f.take(c, id)
	}
	for _, shared := range f.linked[id] {
		lease, ok := f.byID[shared.Parent().SpanID()]
		switch {
		case !shared.Parent().IsValid(): // a batch of timers, which is found by its ids
		case ok && lease.Name() == "lock.hold": // of another order
			f.add(lease, id)
			f.take(shared, shared.Parent().SpanID())
		default:
			f.take(shared, id)
		}
	}
}

func (f *family) add(s sdktrace.ReadOnlySpan, within trace.SpanID) {
	if id := s.SpanContext().SpanID(); !f.taken[id] {
		f.taken[id] = true
		f.spans = append(f.spans, Span{s, within})
	}
}
