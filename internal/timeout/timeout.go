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

// Timer says that something is to be done, and not before when.
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

// Handler works off a batch of timers of one kind and returns what became of each,
// in the same order. It may be called at any time for a timer that it has worked
// off before: the timer is a hint, and the handler's own rows decide.
//
// An error, a panic, or a number of outcomes that is not that of the batch says that
// the batch as a whole had no effect: it is split in halves until the timer that is
// to blame is alone, and that one is tried again later. An error that is
// [ErrUnavailable] is nobody's fault: the batch is tried again after a pause, and no attempt counts.
type Handler func(ctx context.Context, batch []Fired) ([]Outcome, error)

// Outcome is what became of a timer: [Done], [Committed], [Retry], [NotDue] or [Again].
type Outcome struct {
	verdict verdict
	at      time.Time
	after   time.Duration
	err     error
}

type verdict int

const (
	done verdict = iota + 1
	committed
	retry
	notDue
	again
)

// Done says that the work is done. The queue deletes the timer, unless it has been
// given a later due time meanwhile.
func Done() Outcome { return Outcome{verdict: done} }

// Committed says that the handler's own transaction has deleted the timer, with [Queue.Cancel].
func Committed() Outcome { return Outcome{verdict: committed} }

// Retry asks for another attempt after a pause; 0 means the backoff of the options.
// The last attempt that the options allow makes the timer dead: it is kept with the error,
// until somebody redrives or cancels it.
func Retry(after time.Duration, cause error) Outcome {
	return Outcome{verdict: retry, after: after, err: cause}
}

// NotDue says that the timer came too early and is due at the given moment. No attempt counts.
func NotDue(at time.Time) Outcome { return Outcome{verdict: notDue, at: at} }

// Again says that the timer is due, and what it is about cannot be had at the moment, which is not
// its fault. It is tried again after that pause, which must not be negative, or up to twice as long, and
// as often as it takes. No attempt counts.
func Again(after time.Duration) Outcome { return Outcome{verdict: again, after: after} }

// State is the state of a stored timer.
type State string

// A timer that is neither open nor dead has no row.
const (
	Open   State = "OPEN"
	Buried State = "DEAD"
)

// Row is a timer as it is stored.
type Row struct {
	Timer
	Lane      string
	State     State
	Next      time.Time // when it is tried next: Due, or later after a failure
	Attempt   int       // attempts that are counted in the row
	Trace     string
	LastError string
	CreatedAt time.Time
}

// Errors of a Queue.
var (
	// ErrNotFound says that there is no such timer: it was cancelled, or has been
	// worked off.
	ErrNotFound = errors.New("timeout: no such timer")

	// ErrInvalid says that an argument is outside its bounds; nothing has changed.
	ErrInvalid = errors.New("timeout: invalid argument")

	// ErrUnavailable says that what the work depends on does not answer.
	ErrUnavailable = errors.New("timeout: unavailable")
)
