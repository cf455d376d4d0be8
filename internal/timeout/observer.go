package timeout

import "time"

// Reason is why a timer needed more than its index entry. It is safe as a metric label.
type Reason string

// Reasons for a repair.
const (
	RepairOverdue  Reason = "overdue"  // overdue, and handled by the overdue scan
	RepairReassign Reason = "reassign" // its partition had no consumer
)

// Waker is why a consumer asked the index. It is safe as a metric label.
type Waker string

// Wakers.
const (
	WokenTimer   Waker = "timer"   // at the moment that the index had announced
	WokenPoll    Waker = "poll"    // at the end of Options.Poll
	WokenMessage Waker = "message" // the index sent a message
	WokenBacklog Waker = "backlog" // the previous claim was full
)

// Verdict names an outcome in metrics.
type Verdict string

// Verdicts, one for each kind of [Outcome].
const (
	VerdictDone      Verdict = "done"
	VerdictCommitted Verdict = "committed"
	VerdictRetry     Verdict = "retry"
	VerdictNotDue    Verdict = "not_due"
	VerdictDead      Verdict = "dead"
)

// Observer receives what a queue does. Its methods are called from many goroutines,
// often on the path of a timer, and must not block. Embed [NopObserver] to implement some of them.
type Observer interface {
	Scheduled(kind string, n int)                    // rows written; the transaction may still fail
	EntriesDropped(kind string, n int)               // not in the index: too many waited, or the index failed
	Woken(kind string, by Waker)                     // a consumer asks the index
	Claimed(kind string, n int)                      // the index answered; n may be 0
	Fired(kind string, delay time.Duration, f Fired) // a handler gets a timer
	Handled(kind string, n int, took time.Duration, err error)
	Settled(kind string, v Verdict, n int)      // outcomes of timers
	Nacked(kind string, n int)                  // put back into the index unhandled: too early, draining, unavailable
	Repaired(kind string, why Reason, n int)    // 0 in a healthy system
	Offset(kind string, offset time.Duration)   // how far the clock of the index is ahead
	Failed(kind string, during string, e error) // an operation in the background failed, and is retried
}

// NopObserver is an [Observer] that ignores everything.
type NopObserver struct{}

var _ Observer = NopObserver{}

// Scheduled implements [Observer].
func (NopObserver) Scheduled(string, int) {}

// EntriesDropped implements [Observer].
func (NopObserver) EntriesDropped(string, int) {}

// Woken implements [Observer].
func (NopObserver) Woken(string, Waker) {}

// Claimed implements [Observer].
func (NopObserver) Claimed(string, int) {}

// Fired implements [Observer].
func (NopObserver) Fired(string, time.Duration, Fired) {}

// Handled implements [Observer].
func (NopObserver) Handled(string, int, time.Duration, error) {}

// Settled implements [Observer].
func (NopObserver) Settled(string, Verdict, int) {}

// Nacked implements [Observer].
func (NopObserver) Nacked(string, int) {}

// Repaired implements [Observer].
func (NopObserver) Repaired(string, Reason, int) {}

// Offset implements [Observer].
func (NopObserver) Offset(string, time.Duration) {}

// Failed implements [Observer].
func (NopObserver) Failed(string, string, error) {}
