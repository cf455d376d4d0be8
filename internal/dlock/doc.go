// Package dlock defines distributed locks with leases and fencing tokens, and the contract that every
// backend passes.
//
// # Use
//
// A backend implements [Locker]. Most code needs only [Do]:
//
//	err := dlock.Do(ctx, locker, "sku-1", func(ctx context.Context, f dlock.Fence) error {
//		return shelf.Take(ctx, f, 3) // passes the fence on to the resource
//	})
//
// Do waits for the key, runs the function, and releases the key when the function
// returns, panics or exits its goroutine. Use [Locker] directly to hold a key
// over several steps:
//
//	lease, err := locker.TryAcquire(ctx, "report")
//	if errors.Is(err, dlock.ErrHeld) {
//		return nil // another process writes the report
//	}
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx) // also when ctx has ended by then
//	work, cancel := lease.Context(ctx)
//	defer cancel()
//	return write(work, lease.Fence())
//
// [Semaphore] (n permits per key), [RWLocker] (readers share) and [Cond] (wait for a change) use the same [Lease]. A
// type assertion finds the optional capabilities of a backend. [MultiLocker] takes several keys as one,
// [EachLocker] takes those of several keys that are free, [Inspector] reports the holder of a key, and [ForceReleaser]
// releases a key from its holder.
//
// # A lock is a lease
//
// The store forgets a holder that does not renew its lease, so that a key becomes free after a crash. So a holder can
// lose its lock: by a pause, a network partition or a store that loses data. Then [Lease.Done] is closed, and
// contexts from [Lease.Context] are cancelled with a [*LostError] as their cause. The work must stop.
//
// A holder considers its lease valid until nine tenths of the TTL after it sent the last attempt that was
// acknowledged. The store counts a whole TTL from the receipt of that attempt. So the validity ends before the lease
// expires, without comparing clocks. A timer of its own ends the validity, whatever a call to the store is doing.
// Renewals are sent every third of the TTL, for many leases at once, and retried quickly after a failure.
//
// # Fencing tokens
//
// No timer stops a paused process. A holder that resumes after its lease has expired can send one more write before
// it notices. Only the resource can refuse that write. It stores the last [Fence] that it accepted, and accepts
// another one only if it is newer, or equal ([Fence.Passes]). In SQL, this is the first statement of the transaction,
// before any read:
//
//	UPDATE skus SET fence = ?, fence_owner = ?
//	WHERE sku = ? AND (fence < ? OR (fence = ? AND fence_owner = ?))
//
// No row means [ErrFenced]: roll back, and retry under a new lease. One statement less: lock the row with SELECT ...
// FOR UPDATE, compare its fence, and write the new fence with the data. Without that check, the lock only makes
// conflicts rare.
//
// # Holder and reentrancy
//
// The user of the lease's context is the holder: Do passes that context to the function,
// [Lease.Context] returns it. An acquisition of the same key with that context returns
// another [Lease] of the same grant, at once and with the same fencing token. The key is
// free when the last of these leases is released. With any other context, the caller is another
// owner, and waits.
//
// # Guarantees
//
// Every backend passes the conformance tests of package dlocktest. The names of their cases:
//
//   - A free key is granted, to one holder at a time as far as the store can know (MutualExclusion).
//     A live holder keeps the key (KeepsAlive).
//   - A loss is reported, and before the next grant (LossIsReported, BlackHoleIsReportedBeforeTheNextGrant).
//   - Fencing tokens grow, also after the data of a key are lost (FenceIncreases, FenceSurvivesWipe).
//     ZooKeeper and etcd start again if they lose all their data.
//   - Late requests do no harm (LateReleaseIsHarmless, LateRenewalIsHarmless).
//   - A failed or cancelled Acquire leaves nothing behind (ReplyLostAcquireLeavesNothing, WaitersLeaveNothing).
//   - Release works with a context that has ended (DeadContextStillReleases).
//   - A queue is served in order (FIFOByLog). Waiting does not depend on
//     messages (LostNotificationCostsAtMostAFallbackPoll, DeadWaiterIsPassedOver).
//   - A callback may block and may close the client (BlockingOnEndDelaysNobody, CloseInsideOnEnd).
//
// Mutual exclusion of the holders themselves is not guaranteed. Two holders can consider their leases valid in three
// cases:
//
//   - a process or machine sleeps through the end of its lease with its monotonic clock stopped;
//   - clock rates differ by more than a tenth;
//   - the store loses acknowledged data.
//
// Fencing tokens protect the resource in these cases.
//
// A semaphore has no such fencing token, so its limit is not guaranteed in these cases. The limit holds among the
// permits granted before a store lost data and among those granted after (LimitHoldsOnEachSideOfAWipe). Both sets can
// be held together until the former holders are notified, by their next renewal or the end of their lease validity.
// If the store is recognizably another one, the semaphore waits for that instead (KnownWipeIsWaitedOut). A semaphore
// limits load. A resource that must never have one user too many needs a key per place, and their fencing tokens.
//
// # Errors
//
// Test [ErrHeld], [ErrLost], [ErrReleased], [ErrUncertain], [ErrReentry] and [ErrFenced]
// with errors.Is. The end of a context appears as ctx.Err() and its cause.
//
// # Goroutines
//
// A lease costs a timer and no goroutine. A client has a timer while it has leases, and a goroutine for each call in
// flight. [Lease.Release] waits for the calls of its lease. A lease that is neither released nor lost is renewed for
// the life of the process, or up to [Grant].MaxHold.
package dlock
