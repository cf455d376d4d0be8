package timeout

import "time"

// Reason says why the reconciler had to put a hint that should have been there, or
// to handle a timer without one. It is safe as a metric label.
type Reason string

// Reasons for a repair.
const (
	RepairLookAhead Reason = "look_ahead" // due soon, and its hint was lost
	RepairSweep     Reason = "sweep"      // overdue, and handled from the database
	RepairRebuild   Reason = "rebuild"    // the index had been wiped
	RepairAdopt     Reason = "adopt"      // its lane had no consumer
)

// Waker says what made a consumer ask the index. It is safe as a metric label.
type Waker string

// Wakers.
const (
	WokenTimer   Waker = "timer"   // the moment came that the index had announced
	WokenPoll    Waker = "poll"    // it had not asked for as long as is allowed
	WokenMessage Waker = "message" // the index sent word
	WokenBacklog Waker = "backlog" // the claim before was full
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

// Observer is told what a queue does. Its methods are called from many goroutines,
// often on the path of a timer, and must not block. Embed [Nobody] to implement some of them.
type Observer interface {
	Scheduled(kind string, n int)                       // rows written; the transaction may still fail
	HintsDropped(kind string, n int)                    // not pushed: too many waited, or the index failed
	Woken(kind string, by Waker)                        // a consumer asks the index
	Claimed(kind string, n int)                         // the index answered; n may be 0
	Fired(kind string, lateness time.Duration, f Fired) // a handler gets a timer
	Handled(kind string, n int, took time.Duration, err error)
	Settled(kind string, v Verdict, n int)      // what became of timers
	Returned(kind string, n int)                // given back unhandled: too early, draining, unavailable
	Repaired(kind string, why Reason, n int)    // 0 in a healthy system
	Offset(kind string, offset time.Duration)   // how far the clock of the index is ahead of ours
	Leading(kind string, leads bool)            // this instance began or ceased to reconcile
	Failed(kind string, during string, e error) // an operation in the background failed, and will be repeated
}

// Nobody is an [Observer] that ignores everything.
type Nobody struct{}

var _ Observer = Nobody{}

// Scheduled implements [Observer].
func (Nobody) Scheduled(string, int) {}

// HintsDropped implements [Observer].
func (Nobody) HintsDropped(string, int) {}

// Woken implements [Observer].
func (Nobody) Woken(string, Waker) {}

// Claimed implements [Observer].
func (Nobody) Claimed(string, int) {}

// Fired implements [Observer].
func (Nobody) Fired(string, time.Duration, Fired) {}

// Handled implements [Observer].
func (Nobody) Handled(string, int, time.Duration, error) {}

// Settled implements [Observer].
func (Nobody) Settled(string, Verdict, int) {}

// Returned implements [Observer].
func (Nobody) Returned(string, int) {}

// Repaired implements [Observer].
func (Nobody) Repaired(string, Reason, int) {}

// Offset implements [Observer].
func (Nobody) Offset(string, time.Duration) {}

// Leading implements [Observer].
func (Nobody) Leading(string, bool) {}

// Failed implements [Observer].
func (Nobody) Failed(string, string, error) {}
