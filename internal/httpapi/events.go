package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/events"
	"example.com/shop/internal/identity"
)

const (
	eventsPath  = "/api/v1/events"
	eventStream = "text/event-stream"

	// streamRetry is how long clients are told to wait before they come back, and for how
	// much longer at most: an instance that stops sends all of its listeners to the others.
	streamRetry, streamSpread = time.Second, 2 * time.Second
)

// Events is what the handler streams; [*events.Feed] provides it.
type Events interface {
	// Listen begins to listen; see [events.Feed.Listen].
	Listen(f events.Filter, lastID string) (*events.Listener, error)
}

var _ Events = (*events.Feed)(nil)

// SubscribeEvents implements [StrictServerInterface].
func (a *api) SubscribeEvents(ctx context.Context, r SubscribeEventsRequestObject) (SubscribeEventsResponseObject, error) {
	var header http.Header
	if c, ok := ctx.(*gin.Context); ok {
		header = c.Request.Header
	}
	ctx = requestContext(ctx)
	filter, err := filterOf(callOf(ctx).owner(), r.Params)
	if err != nil {
		return nil, err
	}
	if a.Events == nil {
		return nil, events.ErrTooMany
	}
	lastID := ""
	if id := r.Params.LastEventID; id != nil {
		lastID = *id
	}
	listener, err := a.Events.Listen(filter, lastID)
	if err != nil {
		return nil, err
	}
	return &stream{api: a, listener: listener, request: ctx, header: header, caller: callOf(ctx).caller, known: ctx, forget: func() {}}, nil
}

// public are the types of events for the keys of customers: their own orders, and the levels that they may read anyway.
var public = []events.Type{events.TypeOrder, events.TypeStock}

// filterOf returns which events are asked for. Orders of customers are their own.
func filterOf(owner string, p SubscribeEventsParams) (f events.Filter, err error) {
	if p.Types != nil {
		for name := range strings.SplitSeq(*p.Types, ",") {
			f.Types = append(f.Types, events.Type(name))
		}
	}
	if p.SKU != nil {
		f.SKU = *p.SKU
	}
	if p.Order != nil {
		f.Order = *p.Order
	}
	f.Customer = owner
	if owner != "" && slices.ContainsFunc(f.Types, func(t events.Type) bool { return !slices.Contains(public, t) }) {
		return f, refuse(TypeForbidden, "The key of a customer gets events of the types order and stock only.")
	}
	return f, nil
}

// stream is an answer that lasts.
type stream struct {
	*api
	listener *events.Listener
	request  context.Context //nolint:containedctx // The generated code passes none on.
	header   http.Header

	caller identity.Caller
	asked  time.Time       // who it is
	known  context.Context //nolint:containedctx // It ends when the key may work no more.
	forget func()
}

// VisitSubscribeEventsResponse writes what the listener hears, until the client goes, cannot
// keep up or has a key that works no longer, or the instance stops.
func (s *stream) VisitSubscribeEventsResponse(w http.ResponseWriter) error {
	defer s.listener.Close()
	defer func() { s.forget() }()
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // nginx would collect events
	out := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if s.request.Value(headKey{}) != nil {
		return nil
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "retry: %d\n\n", (streamRetry + rand.N(streamSpread)).Milliseconds())
	for s.allowed() {
		if err := s.send(w, out, &text); err != nil {
			s.Logger.LogAttrs(s.request, slog.LevelDebug, "stream ended", slog.Any("error", err))
			return nil
		}
		switch notices, err := s.next(); {
		case err == nil:
			writeNotices(&text, notices)
		case errors.Is(err, errDoubt):
		case errors.Is(err, errQuiet):
			// Also who is not told anything moves on, and can come back to where it is.
			fmt.Fprintf(&text, ":\nid: %s\n\n", s.listener.ID())
		default:
			return nil // the client has gone, or the instance stops
		}
	}
	return nil
}

// Why a stream does not wait any longer.
var (
	errQuiet = errors.New("httpapi: it is time for a heartbeat, or to ask who the client is")
	errDoubt = errors.New("httpapi: the key may work no more")
)

// next returns what is to be sent next.
func (s *stream) next() ([]events.Notice, error) {
	wait := s.Heartbeat
	if s.Identity != nil {
		wait -= time.Since(s.asked)
	}
	ctx, cancel := context.WithTimeoutCause(s.known, wait, errQuiet)
	defer cancel()
	return s.listener.Next(ctx)
}

// send writes text and empties it. It has as long as the server has for a whole answer. What the
// client does not read waits in buffers of both sides first, so one that is so late has gone or
// stalls.
func (s *stream) send(w http.ResponseWriter, out *http.ResponseController, text *bytes.Buffer) error {
	if server, ok := s.request.Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		if err := out.SetWriteDeadline(time.Now().Add(server.WriteTimeout)); err != nil {
			return err
		}
	}
	if _, err := text.WriteTo(w); err != nil {
		return err
	}
	return out.Flush()
}

func writeNotices(text *bytes.Buffer, notices []events.Notice) {
	for _, n := range notices {
		kind, data := string(n.Event.Type), n.Text
		if n.Reset != "" {
			kind, data = "reset", fmt.Sprintf(`{"reason":%q}`, n.Reset)
		}
		fmt.Fprintf(text, "id: %s\nevent: %s\ndata: %s\n\n", n.ID, kind, data)
	}
}

// allowed asks who the client is when it is told that the key may work no more, and once in the time of a
// heartbeat, as nobody may tell: a key that was revoked ends its streams. While that cannot be asked, they go on.
func (s *stream) allowed() bool {
	if s.Identity == nil || s.known.Err() == nil && time.Since(s.asked) < s.Heartbeat {
		return true
	}
	s.forget()
	known, end := context.WithCancelCause(s.request)
	stop := s.Identity.Watch(s.caller.KeyPrefix, func() { end(errDoubt) }) // and then ask, or a revocation could slip through
	s.known, s.forget = known, func() { stop(); end(nil) }
	s.asked = time.Now()
	now, err := s.authenticate(s.request, s.header)
	return errors.Is(err, identity.ErrUnavailable) || err == nil && now == s.caller
}
