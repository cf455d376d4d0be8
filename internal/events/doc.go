// Package events tells those who watch what happens in all instances: what becomes of orders,
// how much is left, who holds which lock, what timers did, who is there and who leads.
//
// # Model
//
//	in each instance
//	what happens -> Publisher -> broadcast.Bus ==> Feed of every instance -> Listener -> a client
//	                (a queue)                      (the latest events)
//
// A [Publisher] stands behind commits. What it is told it puts into the queue of the bus, or into
// a collection: levels, leases and timers come in thousands a second, and nobody wants to
// see more than a few of them. A [Feed] hears the events of all instances, its own too, and keeps the
// latest in a ring. A [Listener] is a place in that ring and no queue: a thousand of them
// cost no more memory than one, and one that does not read is in nobody's way. The feed indexes its listeners by order, customer
// and SKU, so an event wakes only those that it may be for (TestListenersAreWokenForTheirEventsOnly).
//
// # Guarantees
//
// Each names its tests.
//
//   - An event is told at most once to a listener, those of one origin in the order of their
//     numbers, and to the listeners of every instance (TestEveryInstanceHears).
//   - A listener that may not have heard something is told to start anew, by a notice with a [Reason],
//     after the event that it lacks was published: so who then reads what it shows, is right.
//     The first notice of a new one is that, too: listen, and then read. This is so when its instance missed
//     something ([Missed]: TestMissedIsToldToAll), when it was slower than the ring (Slow: TestSlowListenerStartsAnew), and
//     when it comes back and its place is not kept (Gone: TestWhatIsNotKeptIsGone).
//   - One that comes back with the id of what it heard last, to whatever instance, goes on behind that: it
//     hears all that it has not heard, each once, or Gone (TestResumeAtAnyInstance, TestResumeInAnyOrder).
//   - One that listens with the filter of a customer hears nothing but the orders of that customer (TestFilters).
//   - Publishing does not wait, whatever has become of the bus, of Redis behind it or of the database that levels
//     are read from (TestPublishingNeverWaits).
//
// # Not promised
//
// That an event arrives. It is published behind the commit and not in it: an instance that dies
// between them, or whose commit had an unknown outcome, tells nobody. The order's row is the truth, and
// GET /api/v1/orders has it.
//
// An order between two origins. Levels come with the version of their row; the highest is the newest.
//
// That two listeners hear the same, or that each change of a level, each lease and each timer is an event of its own.
//
// That a member that joins or leaves is told: of the instances the one tells whose name comes first, and
// while it is cut off it may miss changes. GET /api/v1/cluster has the members.
//
// That a customer learns nothing at all of others: an id tells the names of the instances, and how much
// they publish.
//
// # Ids
//
// The bus numbers what each origin publishes, and different instances hear different origins in
// different order. So the id of an event, its origin and number, says not what somebody has heard
// who heard it last: of another origin more or less, depending on where. That is why an id has a
// second part: how far the listener is with each of the other origins.
//
//	shop-2:EPOCH:17 shop-1:EPOCH:204 shop-3:EPOCH:9
//
// With this a feed knows what somebody lacks, and whether it has all of that: of each origin it has
// everything behind a floor, which rises when the ring forgets an event, and when the feed may have missed one.
// Its judgement of an id, in which a needless reset is preferred to a loss:
//
//   - What is below the floor may be lost: Gone.
//   - An origin that the id does not name may have been heard by nobody there. It may be lost unless the floor is
//     0, and the origin is not silent: one that is may have been heard and forgotten, and would be told again. This is
//     also so when such an origin appears later (TestOfNobodyItKnew, TestSilentOriginNobodyNamed).
//   - Who has heard nothing of what this feed has heard since it last missed something may lack what was missed, of an origin that
//     neither knows: Gone. So is always who has heard of nobody (TestOfNobodyItKnows).
//   - Who has heard more than this feed, or of an origin that it does not know, waits for it for up to two seconds;
//     some milliseconds as a rule.
//
// A feed that misses something keeps the origins, and how far it heard them. So the ids behind a reset name
// them, and nothing that was heard before is told again (TestNothingFromBeforeAReset); and who lacks something of
// one that has gone is told so (TestForgottenByAMiss). What was published before the reset and not heard may come behind it.
//
// While one catches up, ids are made of the old one and what was passed on since, so that also who breaks off
// then comes back without a gap and without hearing anything twice.
//
// Origins tell how far they are when a new one appears or one begins to hear, and every 5 seconds: so a feed that
// has missed something knows soon from where on it knows everything. An origin that is silent for a minute has gone, and
// its place in ids with it, when another one needs it. Ids have room for 256 origins, of which those that restart
// leave one behind for that minute. Where more speak at once the events of all are told, but ids say nothing: who comes
// back starts anew, until those that found no room have been silent for a minute (TestHundredInstances, TestCrowd).
//
// The alternative was a replay that begins early and leaves it to clients to drop what they know. How
// early is right depends on how far apart instances are, which nobody bounds.
//
// # Failures and what they cost
//
//	the bus loses messages               Missed, for all listeners of those instances that lack them; the ring is empty then
//	Redis is away                        what is published waits in a bounded queue; what does not fit is missed
//	a listener does not read             it: its connection is cut, or it starts anew
//	the instance of a listener dies      it comes back to another one, and goes on
//	the database is away                 levels are told when it is back
//
// # Goroutines
//
// [Feed.Run], [Publisher.Run] and the caller's. A listener has none.
package events
