// Package dlock holds a lock across processes.
//
// # Use
//
// A backend gives a [Locker]. Most code needs [Do] and nothing else:
//
//	err := dlock.Do(ctx, locker, "sku-1", func(ctx context.Context, f dlock.Fence) error {
//		return stock.Take(ctx, f, 3) // passes the fence on to the resource
//	})
//
// Do waits for the key, runs the function, and releases the key when the function
// returns, panics or exits its goroutine. Use [Locker] directly to hold a key
// over several steps:
//
//	lease, err := locker.TryAcquire(ctx, "report")
//	if errors.Is(err, dlock.ErrHeld) {
//		return nil // somebody else is at it
//	}
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx) // also when ctx is dead by then
//	work, cancel := lease.Context(ctx)
//	defer cancel()
//	return write(work, lease.Fence())
//
// Of the same make, and with the same [Lease], are [Semaphore] (n permits per
// key), [RWLocker] (readers share) and [Cond] (wait for a change). What a backend
// can do beyond [Locker] is found by assertion: [MultiLocker] takes several keys as
// one, [Inspector] tells who holds a key, [ForceReleaser] takes it away.
//
// # A lock is a lease
//
// The store forgets a holder that does not renew: that is how a key becomes free
// after a crash. So a holder can lose its lock, by a pause, a cut network or a
// store that loses data. Then [Lease.Done] is closed, contexts from
// [Lease.Context] are cancelled with a [*LostError] as their cause, and the work
// has to stop.
//
// A holder believes in its lease until nine tenths of the TTL after it SENT the
// last attempt that was acknowledged. The store counts a whole TTL from when it
// received that attempt. So the belief ends first, without comparing clocks, and
// by a timer of its own, no matter what any call to the store is doing. Renewals
// are sent every third of the TTL, for many leases at once, and
// repeated quickly when they fail.
//
// # The fence
//
// No timer stops a process that is itself stopped. A holder that wakes up after
// its lease has ended can send one more write before it notices. Only the resource
// can refuse that write: it remembers the last [Fence] it accepted, and accepts
// another one only if it is newer, or the same again ([Fence.Passes]). In SQL, as
// the first statement of the transaction, before anything is read:
//
//	UPDATE skus SET fence = ?, fence_owner = ?
//	WHERE sku = ? AND (fence < ? OR (fence = ? AND fence_owner = ?))
//
// No row means [ErrFenced]: roll back, and try again under a new lease. Or lock the
// row with SELECT ... FOR UPDATE, compare what it says, and write the fence with the
// rest, which is a statement less. Without that check the lock makes conflicts rare,
// and nothing more.
//
// # Who the holder is
//
// The holder is whoever has the context of the lease: Do gives it to the function,
// [Lease.Context] makes it. To acquire the key again with that context returns
// another [Lease] of the same grant, at once and with the same fence; the key is
// free when the last one is released. With any other context the caller is another
// owner, and waits. Where reentrancy is off it gets [ErrReentry].
//
// # Promises
//
// Every backend passes the suite of package dlocktest, whose cases carry these
// names: a free key is granted, and to one holder as far as the store can tell
// (MutualExclusion); a live holder keeps it (KeepsAlive); a loss is reported, and
// before the next grant (LossIsReported, BlackHoleIsReportedBeforeTheNextGrant);
// fences grow, and go on growing when the data of a key are lost (FenceIncreases,
// FenceSurvivesWipe), though ZooKeeper and etcd begin again when they lose everything; who
// comes too late does no harm (LateReleaseIsHarmless, LateRenewalIsHarmless); a
// failed or cancelled Acquire leaves nothing behind (ReplyLostAcquireLeavesNothing,
// WaitersLeaveNothing); a dead context still releases (DeadContextStillReleases).
// Where there is a queue it is served in order (FIFOByLog), and waiting depends on
// no message (LostPushCostsAtMostTheRecheck, DeadWaiterIsPassedOver). A callback may
// block and may close the client (BlockingOnEndDelaysNobody, CloseInsideOnEnd).
//
// Not promised: that beliefs never overlap. They do when a process sleeps through
// the end of its lease, when a machine is suspended and its monotonic clock with
// it, when clocks run at rates that differ by more than a tenth, and when the
// store loses what it has acknowledged. The fence is for exactly these.
//
// A semaphore has no such fence, so that in these cases its limit is not promised:
// it holds among the permits granted before a store lost data and among those
// granted after (LimitHoldsOnEachSideOfAWipe), and both can be out together until
// the holders of before have heard, by their next renewal or the end of their
// trust. Where the store can be seen to be another one, it waits for that instead
// (KnownWipeIsWaitedOut). A semaphore bounds load. What must never have one user too
// many needs a key of its own for each place, and their fences.
//
// # Errors
//
// [ErrHeld], [ErrLost], [ErrReleased], [ErrUncertain], [ErrReentry] and [ErrFenced]
// are tested with errors.Is. The end of a context appears as ctx.Err() and its cause.
//
// # Goroutines
//
// A lease costs a timer and no goroutine. A client has a timer while it has
// leases, and a goroutine for each call in flight, for which [Lease.Release] waits.
// A lease that is neither released nor lost is kept alive for as long as the
// process lives, or up to [Grant].MaxHold.
package dlock
