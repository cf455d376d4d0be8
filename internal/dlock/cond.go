package dlock

import "context"

// Cond is a condition variable across processes: holders of a key wait until
// another holder says that something has changed. It belongs to the Locker it was
// made for, and keeps the waiters of every key apart.
//
//	for !ready() {
//		next, err := cond.Wait(ctx, lease)
//		if err != nil {
//			return err // nothing is held
//		}
//		lease = next
//	}
//
// A waiter checks again when Wait returns. Others may have held the key between
// the signal and the grant; the signal may have been passed on by a waiter that gave
// up, and be older than this wait; and a store that cannot say whether a signal has
// missed a waiter, because it took it for dead or has lost its data, lets it go on.
// A wake-up too many is possible, one too few is not.
//
// Waiters are moved to the queue of the key by a signal, and get the key one after
// another when it is released: they never race for it (wait morphing). A waiter
// whose process has died is skipped. If it dies after the signal has reached it, the
// signal dies with it, as it does with any holder.
type Cond interface {
	// Wait releases l and starts to wait, in one step: a signal that a later holder
	// sends is not missed. It blocks until it is signalled and has the key again, and
	// returns a new lease, with a new fence; or until ctx ends. It returns the errors
	// of [Locker.Acquire], and [ErrLost] or [ErrReleased] at once when l has ended.
	//
	// After an error nothing is held and nothing queued, and a signal that had
	// already reached this waiter has been passed on to the next one. l has ended in
	// any case, but for one: [ErrReentry] leaves l as it is. It refuses a key that is
	// held by more leases of the same grant, or with more keys by the same lease,
	// because what others need would stay held; and a ctx from [Lease.Context] of l,
	// which would end with l.
	Wait(ctx context.Context, l *Lease) (*Lease, error)

	// Signal wakes the waiter that has waited longest. A signal that finds nobody
	// has no effect. It makes one attempt, and returns [ErrLost] or [ErrReleased] when
	// l is not held, [ErrUncertain] when the store did not answer: then the waiter may
	// have been woken.
	Signal(ctx context.Context, l *Lease) error

	// Broadcast wakes all who wait. Its errors are those of Signal.
	Broadcast(ctx context.Context, l *Lease) error
}
