package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/timeout"
)

// timersPage is the default number of timers on one page.
const timersPage = 100

// Timers has the operations on timers; [*timeout.Queue] implements it.
type Timers interface {
	List(ctx context.Context, f timeout.Filter) ([]timeout.Row, error)
	Get(ctx context.Context, kind, id string) (timeout.Row, error)
	FireNow(ctx context.Context, kind, id string) error
	Redrive(ctx context.Context, kind string, ids ...string) (int, error)
	Pause(ctx context.Context, kind string) error
	Resume(ctx context.Context, kind string) error
	Stats(ctx context.Context) ([]timeout.Stats, error)
}

var _ Timers = (*timeout.Queue)(nil)

// ListTimers implements [StrictServerInterface].
func (a *api) ListTimers(ctx context.Context, r ListTimersRequestObject) (ListTimersResponseObject, error) {
	limit := given(r.Params.Limit, timersPage)
	f := timeout.Filter{
		Kind: given(r.Params.Kind, ""), State: timeout.State(given(r.Params.State, "")),
		Limit: limit + 1, // one more, to detect a next page
	}
	cursor, err := cursorParam(r.Params.Cursor, r.Params.After)
	if err != nil {
		return nil, err
	}
	if cursor != "" {
		if f.After, err = parseCursor(cursor); err != nil {
			return nil, refuse(TypeMalformedRequest, "The query parameter cursor is not the next of a page.")
		}
	}
	ctx, _ = requestOf(ctx)
	rows, err := a.Timers.List(ctx, f)
	if err != nil {
		return nil, err
	}
	page := TimerPage{Timers: make([]Timer, 0, len(rows))}
	if len(rows) > limit {
		rows = rows[:limit]
		next := cursorOf(rows[limit-1])
		page.Next = &next
	}
	for _, row := range rows {
		page.Timers = append(page.Timers, timerBody(row))
	}
	return ListTimers200JSONResponse(page), nil
}

// cursorOf returns the cursor of a page that begins after r, and parseCursor reads it. No kind and no id
// contains a space.
func cursorOf(r timeout.Row) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s %s", r.Next.UnixMilli(), r.Kind, r.ID))
}

func parseCursor(s string) (r timeout.Row, err error) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return r, err
	}
	var ms int64
	if _, err := fmt.Sscanf(string(text), "%d %s %s", &ms, &r.Kind, &r.ID); err != nil {
		return r, err
	}
	r.Next = time.UnixMilli(ms)
	if cursorOf(r) != s {
		return r, errors.New("not a cursor")
	}
	return r, nil
}

// GetTimer implements [StrictServerInterface].
func (a *api) GetTimer(ctx context.Context, r GetTimerRequestObject) (GetTimerResponseObject, error) {
	ctx, _ = requestOf(ctx)
	row, err := a.Timers.Get(ctx, r.Kind, r.ID)
	if err != nil {
		return nil, err
	}
	return GetTimer200JSONResponse(timerBody(row)), nil
}

// FireTimer implements [StrictServerInterface].
func (a *api) FireTimer(ctx context.Context, r FireTimerRequestObject) (FireTimerResponseObject, error) {
	ctx, _ = requestOf(ctx)
	if err := a.Timers.FireNow(ctx, r.Kind, r.ID); err != nil {
		return nil, unconfirmed(err)
	}
	return FireTimer200JSONResponse{Kind: r.Kind, Timers: 1}, nil
}

// RedriveTimers implements [StrictServerInterface].
func (a *api) RedriveTimers(ctx context.Context, r RedriveTimersRequestObject) (RedriveTimersResponseObject, error) {
	ctx, _ = requestOf(ctx)
	var ids []string
	if r.Params.ID == nil {
		if err := a.requireKind(ctx, r.Kind); err != nil {
			return nil, err
		}
	} else {
		if _, err := a.Timers.Get(ctx, r.Kind, *r.Params.ID); err != nil {
			return nil, err
		}
		ids = append(ids, *r.Params.ID)
	}
	n, err := a.Timers.Redrive(ctx, r.Kind, ids...)
	if err != nil {
		return nil, unconfirmed(err)
	}
	return RedriveTimers200JSONResponse{Kind: r.Kind, Timers: n}, nil
}

// PauseTimers implements [StrictServerInterface].
func (a *api) PauseTimers(ctx context.Context, r PauseTimersRequestObject) (PauseTimersResponseObject, error) {
	ctx, _ = requestOf(ctx)
	if err := a.requireKind(ctx, r.Kind); err != nil {
		return nil, err
	}
	if err := a.Timers.Pause(ctx, r.Kind); err != nil {
		return nil, unconfirmed(err)
	}
	return PauseTimers200JSONResponse{Kind: r.Kind, Paused: true}, nil
}

// ResumeTimers implements [StrictServerInterface].
func (a *api) ResumeTimers(ctx context.Context, r ResumeTimersRequestObject) (ResumeTimersResponseObject, error) {
	ctx, _ = requestOf(ctx)
	if err := a.Timers.Resume(ctx, r.Kind); err != nil {
		return nil, unconfirmed(err)
	}
	return ResumeTimers200JSONResponse{Kind: r.Kind}, nil
}

// unconfirmed returns the problem of a change to timers that failed with err. The store may have committed a change that it
// did not confirm.
func unconfirmed(err error) error {
	if errors.Is(err, timeout.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &refusal{Problem: newProblem(TypeOutcomeUnknown, outcomeUnknownDetail), cause: err}
	}
	return err
}

// requireKind refuses a kind that has neither a handler at this instance nor a stored timer, so that a
// mistyped kind is reported.
func (a *api) requireKind(ctx context.Context, kind string) error {
	rows, err := a.Timers.List(ctx, timeout.Filter{Kind: kind, Limit: 1})
	if err != nil || len(rows) > 0 {
		return err
	}
	all, err := a.Timers.Stats(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Kind == kind {
			return nil
		}
	}
	return refuse(TypeNotFound, "No timer has this kind, and this instance has no handler for it.")
}

func timerBody(r timeout.Row) Timer {
	return Timer{
		Kind: r.Kind, ID: r.ID, State: TimerState(r.State), Partition: r.Partition, Due: r.Due.UTC(), Next: r.Next.UTC(), Attempt: r.Attempt,
		LastError: r.LastError, Traceparent: r.Trace, CreatedAt: r.CreatedAt.UTC(),
	}
}
