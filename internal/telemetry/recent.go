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

// spanID identifies a span.
type spanID struct {
	trace.TraceID
	trace.SpanID
}

func idOf(s trace.SpanContext) spanID { return spanID{s.TraceID(), s.SpanID()} }

// parentOf returns the parent of s at this instance. A client chooses the parent of its request, which may be the span of another order.
func parentOf(s sdktrace.ReadOnlySpan) spanID {
	if s.Parent().IsRemote() {
		return spanID{}
	}
	return idOf(s.Parent())
}

// of returns the spans of an order that are kept, the earliest first: those of the requests and of the batches of timers that placed and changed it,
// and of transactions that it shared with other orders. It also returns since when spans are kept.
func (r *recent) of(order string) (spans []Span, since time.Time) {
	r.mu.Lock()
	r.trim(time.Now())
	all, since := slices.Clone(r.spans), r.since
	r.mu.Unlock()
	f := &family{
		order: order, byID: make(map[spanID]sdktrace.ReadOnlySpan, len(all)),
		children: make(map[spanID][]sdktrace.ReadOnlySpan), linked: make(map[spanID][]sdktrace.ReadOnlySpan), taken: make(map[spanID]bool),
	}
	for _, s := range all {
		f.byID[idOf(s.SpanContext())] = s
		f.children[parentOf(s)] = append(f.children[parentOf(s)], s)
		for _, l := range s.Links() {
			f.linked[idOf(l.SpanContext)] = append(f.linked[idOf(l.SpanContext)], s)
		}
	}
	for _, s := range all {
		if !f.names(s) {
			continue
		}
		for p, ok := f.byID[parentOf(s)]; ok; p, ok = f.byID[parentOf(p)] {
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
	byID             map[spanID]sdktrace.ReadOnlySpan
	children, linked map[spanID][]sdktrace.ReadOnlySpan // by parent, and by span that they link to
	taken            map[spanID]bool
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
	id := idOf(s.SpanContext())
	if f.taken[id] || slices.ContainsFunc(s.Attributes(), func(a attribute.KeyValue) bool { return a.Key == orderID && a.Value.AsString() != f.order }) {
		return
	}
	f.add(s, within)
	for _, c := range f.children[id] {
		// A span whose links all lead elsewhere is a transaction of other orders, under the same lease.
		if len(c.Links()) == 0 || slices.ContainsFunc(c.Links(), func(l sdktrace.Link) bool { return f.taken[idOf(l.SpanContext)] }) {
			f.take(c, id.SpanID)
		}
	}
	for _, shared := range f.linked[id] {
		lease, ok := f.byID[parentOf(shared)]
		switch {
		case !shared.Parent().IsValid(): // a batch of timers, which is found by its ids
		case ok && lease.Name() == "lock.hold": // of another order
			f.add(lease, id.SpanID)
			f.take(shared, shared.Parent().SpanID())
		default:
			f.take(shared, id.SpanID)
		}
	}
}

func (f *family) add(s sdktrace.ReadOnlySpan, within trace.SpanID) {
	if id := idOf(s.SpanContext()); !f.taken[id] {
		f.taken[id] = true
		f.spans = append(f.spans, Span{s, within})
	}
}
