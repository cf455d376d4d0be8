package timeout

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Tx is the caller's transaction: a *sql.Tx, or what an ORM makes of one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Timer is something to be done, not before a moment.
type Timer struct {
	// Kind names the handler: 1 to 32 letters, digits, dots, dashes and underscores.
	Kind string

	// ID names what it is about, once per kind: 1 to 64 printable ASCII characters
	// without spaces. It is all that a handler gets; there is no payload.
	ID string

	// Due is the earliest moment, by the database's clock, rounded up to a
	// millisecond. A moment that has passed is due at once.
	Due time.Time
}

// Fired is a timer that is due, as a handler gets it.
type Fired struct {
	ID      string
	Due     time.Time
	Attempt int    // 1 for the first, counted before the handler runs
	Trace   string // traceparent of whoever scheduled it; may be empty
}

// Handler handles a batch of timers of one kind and returns the outcome of each, in the same order.
// It may be called again for a timer that it has handled before: the handler's own rows decide.
//
// An error, a panic, or a wrong number of outcomes means that the batch as a whole had no
// effect. The queue splits the batch in halves until the timer that fails is alone, and retries that
// timer later. After an [ErrUnavailable] the queue retries the batch after a pause, and counts no attempt.
type Handler func(ctx context.Context, batch []Fired) ([]Outcome, error)

// Outcome is the result of handling a timer: [Done], [Committed], [Retry], [NotDue] or [Again].
type Outcome struct {
	verdict Verdict
	at      time.Time
	after   time.Duration
	err     error
}

// verdictAgain is that of [Again], which counts as not due.
const verdictAgain Verdict = "again"

// Done ends the timer. The queue deletes it, unless it has got a later due time meanwhile.
func Done() Outcome { return Outcome{verdict: VerdictDone} }

// Committed ends a timer that the handler's own transaction has deleted with [Queue.Cancel].
func Committed() Outcome { return Outcome{verdict: VerdictCommitted} }

// Retry asks for another attempt after a pause; 0 means the backoff of the options.
// After the last attempt that the options allow, the timer is dead. It is kept with the error
// until an operator redrives or cancels it.
func Retry(after time.Duration, cause error) Outcome {
	return Outcome{verdict: VerdictRetry, after: after, err: cause}
}

// Err returns the cause of a [Retry], and nil for any other outcome.
func (o Outcome) Err() error { return o.err }

// NotDue fires the timer again at the given moment, for one that came too early. No attempt counts.
func NotDue(at time.Time) Outcome { return Outcome{verdict: VerdictNotDue, at: at} }

// Again fires the timer again after the pause, or up to twice as long, as often as it takes. It is for a
// timer whose subject is locked by another transaction. The pause must not be negative. No attempt counts.
func Again(after time.Duration) Outcome { return Outcome{verdict: verdictAgain, after: after} }

// State is the state of a stored timer.
type State string

// A timer that is neither open nor dead has no row.
const (
	Open State = "OPEN"
	Dead State = "DEAD"
)

// Row is a timer as it is stored.
type Row struct {
	Timer
	Partition string
	State     State
	Next      time.Time // when it is tried next: Due, or later after a failure
	Attempt   int       // attempts that are counted in the row
	Trace     string
	LastError string
	CreatedAt time.Time
}

// Errors of a Queue.
var (
	// ErrNotFound means that there is no such timer: it was cancelled, or has been handled.
	ErrNotFound = errors.New("timeout: no such timer")

	// ErrInvalid means that an argument is outside its bounds; nothing has changed.
	ErrInvalid = errors.New("timeout: invalid argument")

	// ErrUnavailable means that the database, or another system that a handler depends on, does not answer.
	ErrUnavailable = errors.New("timeout: unavailable")
)
