// Package waitlist queues customers of several processes that wait for units of a sold-out
// SKU, until units are released.
//
// # Use
//
//	list, err := waitlist.New(waitlist.Config{Lock: lock, Cond: cond, Queue: queue})
//	...
//	err = list.Wait(ctx, "sku:lamp", waitlist.Claim{
//		Poll: func(ctx context.Context) (bool, error) { return available(ctx, "lamp") >= 2, nil },
//		Try:  func(ctx context.Context) (bool, error) { return place(ctx, "lamp", 2) },
//	})
//
// After a commit that releases units, any process calls list.Notify("sku:lamp"). The goroutine that runs [Waitlist.Run]
// notifies the waiters.
//
// # Model
//
// The caller owns the units and their count. The package has a key, a cheap poll that reports
// whether a try is worthwhile, and the try. It adds a queue and a condition.
//
// The queue is a lease of Config.Queue, granted in the order of arrival, as those of redislock are. The holder of that lease is
// first in the queue. The other waiters neither poll nor try, so released units cost as many tries
// as there are units.
//
// The first waiter waits for the condition, of Config.Lock:
//
//	waiter                                notifier
//	------                                --------
//	queue: acquire (first come, first served)
//	poll; yes: try
//	units: acquire                        commit
//	poll; yes: release, try               Notify
//	wait: release and sleep, in one step  units: acquire, wake, release
//	woken with units held: poll again     (up to 64 keys at a time)
//	...
//	queue: release: the next one is first
//
// The waiter holds the lock of the units during a poll, and never during a try, which may take seconds. It keeps its place in the
// queue during both, even if a try fails because another customer was quicker. When a waiter
// leaves, the next one polls at once: units may remain, and a signal may have been meant for the waiter that left.
//
// A waiter holds no database connection, no permit, and no lock.
//
// # Guarantees
//
// Each is the name of a test.
//
//   - Waiters for a key are served in the order of arrival, over all
//     processes (FirstComeFirstServed). Later waiters do not overtake the first one,
//     even if they want less (HeadOfTheQueueIsNotOvertaken). The first waiter stays first when its
//     try fails (NewcomerIsQuicker).
//   - As many waiters are served as there are released units, without any
//     fallback poll (ReleasedUnitsServeAsManyCustomers). A commit between the last poll
//     and the wait is not missed (NoSignalIsLostBetweenPollAndWait).
//   - A lost signal costs a fallback poll (LostSignalCostsAFallbackPoll), and so does a
//     process that died with the lock of the units (HeldLockCostsAFallbackPoll).
//   - A leaving waiter takes no signal along (LeavingWaiterTakesNoSignal),
//     leaves nothing in the lock service but fencing tokens (NothingIsLeftBehind), and returns the cause
//     (ContextEndsTheWait). Panics free the place, too (PanicFreesAll).
//   - A try does not delay Notify (TryHoldsItsPlaceButNoLock), and
//     continues if the place is lost (TryOutlastsItsPlace).
//   - Notifications are merged (ManyNotificationsAreMerged), do not block (NotifyDoesNotBlock), and
//     cost one command if there is no waiter (NotifyWithoutWaitersIsCheap).
//   - A killed waiter stays first for at most one TTL of Config.Queue (KilledFirstWaiterIsReplaced).
//   - An owner has at most Config.MaxPerOwner places of a process (OneOwnerDoesNotFillTheList). The waiters for one key
//     leave as many places free as they have (OneKeyLeavesPlacesForOthers).
//   - While the lock service is unavailable, customers are served (RedisIsKilled, UnansweringRedisDelaysNobodyLong),
//     few of a process at a time (WithoutAQueueWaitersPoll).
//
// # Why no signal is lost
//
// The first waiter holds the lock of the units during its last poll, and releases it when it starts to sleep, in one
// step. A notifier acquires that lock after the commit. If the notifier gets the lock before the waiter, the poll comes
// after the commit and sees the units. If it gets the lock later, it wakes the waiter. The poll must therefore see
// every commit before its call: it must not use an earlier transaction, a replica, or a cache.
//
// Wake-ups go to all sleepers, because a single signal could reach a process that has just died.
// A notifier that finds an empty queue sends nothing. A later waiter polls before it sleeps.
//
// # Limits
//
//   - A customer who does not wait may be quicker than those who do.
//   - A first waiter that wants five units blocks later waiters that want one, until its deadline, and all wait
//     for the duration of its try.
//   - A waiter whose process was paused for longer than the TTL, or whose lock service lost its data,
//     goes to the end of the queue. Two waiters may consider themselves first for a moment; the caller keeps the units exact.
//
// # Time and failures
//
//	a notification                        one round trip to read the queue, three to wake; 10 ms to the next of the same key
//	a lost signal                         Config.FallbackPoll
//	a lost notification of the lock service   its own fallback poll: a second with redislock
//	a killed first waiter                 the TTL of Config.Queue
//	a killed later waiter                 nothing
//	a waiter killed with units held       the TTL of Config.Lock for signals; the fallback poll replaces them
//	a process that ends before Run notifies   Config.FallbackPoll
//	Poll and Try that contradict each other   a pause of 10 ms that doubles up to Config.FallbackPoll
//
// If the lock service is unavailable, a waiter continues without a place in the queue. It polls every 0.8 to 1
// FallbackPoll, with at most eight of its process at the same time, and asks for a place each time. There is no order
// meanwhile. In the queue of redislock, waiters notice a service that does not answer after the TTL of Config.Queue.
// Until then only the first waiter polls. So this TTL should be a few seconds. Config.OnError receives all these
// errors. While the service does not answer, Wait may return late: releasing its lease takes up to a third of that TTL,
// at most 2 s.
//
// # Goroutines
//
// Wait starts none. Run starts one for each key that it notifies, 64 at most, and
// waits for them before it returns.
package waitlist
