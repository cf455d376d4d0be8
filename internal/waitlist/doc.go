// Package waitlist lets customers of several processes wait in line for units of
// something that is sold out, until somebody gives units back.
//
// # Use
//
//	list, err := waitlist.New(waitlist.Config{Lock: lock, Cond: cond, Line: line})
//	...
//	err = list.Wait(ctx, "sku:lamp", waitlist.Claim{
//		Look: func(ctx context.Context) (bool, error) { return available(ctx, "lamp") >= 2, nil },
//		Try:  func(ctx context.Context) (bool, error) { return place(ctx, "lamp", 2) },
//	})
//
// Whoever gives units back, in any process, says so after the commit, and does not
// wait for anything: list.Notify("sku:lamp"). A goroutine that runs [Waitlist.Run] tells
// the waiters.
//
// # Model
//
// What is sold, and where it is counted, is the caller's: the package knows a key,
// a cheap question whether it is worth a try, and the try. It adds two things.
//
// The line is a lease of Config.Line, which is given in the order in which it was
// asked for. Who has it is first. The others wait for it and do nothing else: they
// neither look nor try, so that units which come back cost as many tries as there
// are customers for them, and not as many as wait.
//
// The condition, of Config.Lock, is what the first one waits for:
//
//	waiter                                notifier
//	------                                --------
//	line: acquire (first come, first served)
//	look; yes: try
//	units: acquire                        commit
//	look; yes: release, try               Notify
//	wait: release and sleep, in one step  units: acquire, wake, release
//	woken with units held: look again     (up to 64 keys at a time)
//	...
//	line: release: the next one is first
//
// The lock of the units is held for a look, and never during a try: a try is an order,
// with a guard and a transaction, and may take seconds. The place in line is held over
// both, also if a try comes to nothing because somebody was quicker. A waiter that
// leaves for any reason leaves its place, and the next one looks at once: units may
// remain, and a signal may have been meant for the one that left.
//
// So a waiter costs a place in the queue of a lock service, and the goroutine that
// called Wait. It holds no connection to a database, no permit, and no guard.
//
// # Guarantees
//
// Each is the name of a test.
//
//   - Those who wait for a key are served in the order in which they came, over all
//     processes (FirstComeFirstServed). The first one is not overtaken by those behind,
//     also if they want less (HeadOfLineIsNotOvertaken), and stays first when a try of its
//     own came to nothing (NewcomerIsQuicker).
//   - Units that come back are taken by as many as there are units for, without any
//     re-check (UnitsComeBackToAsManyCustomers). What is committed between the last look
//     and the wait is not missed (NoSignalIsLostBetweenLookAndWait).
//   - A signal that is lost costs a re-check (LostSignalCostsARecheck), and so does a
//     process that died with the lock of the units (LockThatIsHeldCostsARecheck).
//   - Who gives up, wherever it is, takes no signal along (WhoLeavesTakesNoSignalAlong),
//     leaves nothing in the lock service but fences (NothingIsLeft), and returns the cause
//     (EndOfTheContext). Panics free the place, too (PanicFreesAll).
//   - A try delays nobody who says that units came back (TryHoldsThePlaceAndNoLock), and
//     is not cut short by the loss of the place (TryOutlastsItsPlace).
//   - Notifications are merged (StormIsMerged), do not block (NotifyDoesNotBlock), and
//     cost one command where nobody waits (NobodyWaits).
//   - A waiter that is killed is first for one TTL of Line at most (FirstInLineIsKilled).
//   - An owner has at most Config.MaxPerOwner places of a process (OneOwnerDoesNotFillTheList), and those who wait
//     for one key leave as many places free as they have (OneKeyLeavesPlacesForOthers).
//   - While the lock service is away customers are served (RedisIsKilled, RedisIsSilent),
//     few of a process at a time (WithoutALine).
//
// # Why no signal is lost
//
// The first in line holds the lock of the units when it looks for the last time, and
// gives it up in the same step in which it begins to sleep. A notifier needs that lock
// to wake it, and asks for it after the commit. If it gets the lock before the waiter
// does, the look comes after the commit and sees the units. If it gets it later, there is
// somebody to wake. The look must therefore see what was committed before it was
// called: it may not use a transaction that began earlier, a replica, or a cache.
//
// Wake-ups go to all who sleep. That is the first one, and those that have been first and
// that the lock service believes to sleep still, because their processes have just
// died: a single signal would be theirs. A notifier that finds nobody in line says
// nothing. Whoever comes to the line after that looks before it sleeps.
//
// # Not promised
//
// That a waiter comes before a customer that does not wait: an order that arrives just
// when units come back needs no line, and may be quicker. That the line is fair to small
// wishes: the first one, who wants five, holds up those behind who want the one that
// came back, until the deadline of its ctx. That order holds over the loss of a place:
// a lease that lapses, because its process was stopped for longer than the TTL or the
// lock service has lost its data, sends the waiter to the end of the line. (Then
// two may believe to be first for a moment. They look and try as any two customers
// do: what keeps the units exact is the caller's, and not the line.) That a key's first
// waiter is quick: the others wait for as long as its try takes.
//
// # Time and failures
//
//	a notification                    one round trip to see who waits, three to wake; 10 ms to the next of the same key
//	a signal is lost                  Config.Recheck
//	a push of the lock service is lost    its own re-check: a second with redislock
//	the first one is killed           the TTL of Line
//	one behind it is killed           nothing
//	it is killed with units held      the TTL of Lock for signals; the re-check stands in
//	a process ends before it has told     Config.Recheck
//	Look and Try contradict each other    a pause of 10 ms that doubles up to Config.Recheck
//
// When the line cannot be had, because the lock service is away, a waiter goes on alone:
// it looks every 0.8 to 1 Recheck, with at most eight of its process at the same time, and
// asks for a place each time. There is no order meanwhile. A service that refuses is
// noticed at once. One that is silent is noticed by those in the queue of redislock when
// they have not been answered for the TTL of Line: until then only the first one looks.
// That is one reason for a short TTL there, of a few seconds; how long a dead waiter
// holds the line up is the other. Config.OnError hears of all that. With the service silent,
// Wait may return later than its ctx ends or its try succeeds, by the time that it
// needs to give up on the release: up to a third of that TTL, or 2 s if that is less.
//
// # What it costs
//
// In Redis, per second: one command for each waiter behind the first, or one in each quarter
// of the TTL of Line if that is less than 4 s; some six for the first of each key. In the database: two looks per Recheck for each key, and two for
// each wake-up, whatever the number of those who wait. A key can be told of a hundred times per
// second by each process, however often Notify is called.
//
// # Goroutines
//
// Wait starts none. Run starts one for each key that it is telling of, 64 at most, and
// waits for them before it returns. What the lock service does in the background is
// its own, and ends with its Close.
package waitlist
