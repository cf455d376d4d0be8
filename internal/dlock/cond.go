package dlock

import "context"

// Cond is a condition variable across processes: holders of a key wait until
// another holder signals a change. It belongs to one Locker, and has separate waiters
// for every key.
//
//	for !ready() {
//		next, err := cond.Wait(ctx, lease)
//		if err != nil {
//			return err // nothing is held
//		}
//		lease = next
//	}
//
// A waiter must check again when Wait returns. Other holders may have had the key between
// the signal and the grant. The signal may come from a waiter that gave
// up, and be older than this wait. A store that cannot know whether a waiter missed a signal,
// because it considered the waiter dead or has lost its data, wakes the waiter.
// Spurious wake-ups are possible, lost wake-ups are not.
//
// A signal moves waiters to the queue of the key. They get the key one after
// another when it is released, and never race for it (wait morphing). A waiter
// whose process has died is skipped. If the process dies after the signal has reached it, the
// signal is lost, as with any holder. So it is if the process is silent until it is considered
// dead, and then gives up.
type Cond interface {
	// Wait releases l and starts to wait in one step, so it misses no signal of a later
	// holder. It blocks until it is signalled and has the key again, and
	// returns a new lease with a new fencing token; or until ctx ends. It returns the errors
	// of [Locker.Acquire], and [ErrLost] or [ErrReleased] at once if l has ended.
	//
	// After an error nothing is held or queued, and a signal that had already reached this waiter has been passed on
	// to the next one. l has ended, except after [ErrReentry], which leaves l as it is. Wait returns ErrReentry in two
	// cases. The key would stay held, because several leases of the same grant hold it, or the same lease holds other
	// keys as well. Or ctx is from [Lease.Context] of l, and would end with l.
	Wait(ctx context.Context, l *Lease) (*Lease, error)

	// Signal wakes the waiter that has waited longest. Without a waiter it
	// has no effect. It makes one attempt. It returns [ErrLost] or [ErrReleased] if
	// l is not held, and [ErrUncertain] if the store did not answer: then the waiter may
	// have been woken.
	Signal(ctx context.Context, l *Lease) error

	// Broadcast wakes all waiters. Its errors are those of Signal.
	Broadcast(ctx context.Context, l *Lease) error
}
