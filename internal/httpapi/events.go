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

	"example.com/shop/internal/events"
	"example.com/shop/internal/identity"
)

const (
	eventsPath  = "/api/v1/events"
	eventStream = "text/event-stream"

	// Clients reconnect after streamRetry plus a random part of streamSpread. So the listeners of a stopped instance
	// do not reach the others all at once.
	streamRetry, streamSpread = time.Second, 2 * time.Second
)

// SubscribeEvents implements [StrictServerInterface].
func (a *api) SubscribeEvents(ctx context.Context, r SubscribeEventsRequestObject) (SubscribeEventsResponseObject, error) {
	ctx, in := requestOf(ctx)
	filter, err := filterOf(in.owner(), r.Params)
	if err != nil {
		return nil, err
	}
	if a.Events == nil {
		return nil, events.ErrTooMany
	}
	listener, err := a.Events.Listen(filter, in.header.Get("Last-Event-ID"))
	if err != nil {
		return nil, err
	}
	return &stream{api: a, listener: listener, request: ctx, header: in.header, caller: in.caller, keyValid: ctx, stopWatch: func() {}}, nil
}

// customerTypes are the types of events that customers may receive: their own orders, and stock levels.
var customerTypes = []events.Type{events.TypeOrder, events.TypeStock}

// filterOf returns the filter for the query parameters. A customer receives events of its own orders only.
func filterOf(owner string, p SubscribeEventsParams) (f events.Filter, err error) {
	if p.Types != nil {
		for name := range strings.SplitSeq(*p.Types, ",") {
			f.Types = append(f.Types, events.Type(name))
		}
	}
	f.SKU, f.Order, f.Customer = given(p.SKU, ""), given(p.Order, ""), owner
	if owner != "" && slices.ContainsFunc(f.Types, func(t events.Type) bool { return !slices.Contains(customerTypes, t) }) {
		return f, refuse(TypeForbidden, "The key of a customer gets events of the types order and stock only.")
	}
	return f, nil
}

// stream is the response of an event stream.
type stream struct {
	*api
	listener *events.Listener
	request  context.Context //nolint:containedctx // The generated code passes no context.
	header   http.Header

	caller    identity.Caller
	checked   time.Time       // when the key was last authenticated
	keyValid  context.Context //nolint:containedctx // It ends when the key may have become invalid.
	stopWatch func()
}

// VisitSubscribeEventsResponse writes the events of the listener. It returns when the client disconnects, cannot
// keep up or has an invalid key, or when the instance stops.
func (s *stream) VisitSubscribeEventsResponse(w http.ResponseWriter) error {
	defer s.listener.Close()
	defer func() { s.stopWatch() }()
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // nginx would buffer events
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
		case errors.Is(err, errKeyChanged):
		case errors.Is(err, errHeartbeat):
			// The id lets a client without matching events reconnect at its current position.
			fmt.Fprintf(&text, ":\nid: %s\n\n", s.listener.ID())
		default:
			return nil // the client has disconnected, or the instance is shutting down
		}
	}
	return nil
}

// Causes that end the wait for the next event.
var (
	errHeartbeat  = errors.New("httpapi: a heartbeat or an authentication is due")
	errKeyChanged = errors.New("httpapi: the key may have become invalid")
)

// next waits for the next events.
func (s *stream) next() ([]events.Notice, error) {
	wait := s.Heartbeat
	if s.Identity != nil {
		wait -= time.Since(s.checked)
	}
	ctx, cancel := context.WithTimeoutCause(s.keyValid, wait, errHeartbeat)
	defer cancel()
	return s.listener.Next(ctx)
}

// send writes text and empties it. Its time limit is the server's WriteTimeout. Unread
// text first fills the buffers of both sides, so a client that exceeds the limit has gone or
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

// allowed reports whether the key is still valid. It authenticates again when a notification says that the key may have
// become invalid, and once per heartbeat, because notifications can be lost. While the store of keys is unavailable, streams continue.
func (s *stream) allowed() bool {
	if s.Identity == nil || s.keyValid.Err() == nil && time.Since(s.checked) < s.Heartbeat {
		return true
	}
	s.stopWatch()
	valid, end := context.WithCancelCause(s.request)
	stop := s.Identity.Watch(s.caller.KeyPrefix, func() { end(errKeyChanged) }) // watch first, authenticate second: otherwise a revocation between the two would be missed
	s.keyValid, s.stopWatch = valid, func() { stop(); end(nil) }
	s.checked = time.Now()
	now, err := s.authenticate(s.request, s.header)
	return errors.Is(err, identity.ErrUnavailable) || err == nil && now == s.caller
}
