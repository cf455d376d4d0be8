// Package broadcast tells every instance what happens in one of them: small messages,
// at most once, and never silently less. It is for what one would rather know soon, and can
// do without: pages that are open, and copies of what changes seldom.
//
// # Model
//
// A [Bus] is one process on a network of processes that hear one another. What a process
// publishes is numbered, sent to all in one piece, and delivered to those of their
// subscriptions whose patterns match its topic.
//
//	Publish -> number -> outbox --> the network --> each process: what is lost? -> Fanout -> Subscription -> Next
//	           (bounded, dropped from)                                           (bounded, dropped from)
//
// On this way a message can be lost in several places, and none of them waits for a slow
// one: neither a publisher, who may have committed an order just now, nor the goroutine that
// receives for all subscriptions. Instead every loss is told, as an [Event] with [Missed]
// among the messages, to everybody who may have lost something. Told is meant in the order of
// things: a message that a subscription does not deliver is followed by a notice that was
// queued after the message had been published. So who reads anew at each notice what it
// keeps a copy of, has a copy that is right, a little later.
//
//	s, err := bus.Subscribe("config.*")
//	...
//	for {
//		e, err := s.Next(ctx)
//		switch {
//		case err != nil:
//			return err
//		case e.Missed != nil:
//			cache.Load(ctx) // also the first time: subscribe, and then read
//		default:
//			cache.Change(e.Message)
//		}
//	}
//
// The first event of a subscription is such a notice, so the loop has no other beginning.
// Reading first and subscribing then would miss what happens in between.
//
// # Guarantees
//
// Each is the name of a case of the suite in broadcasttest, which every backend passes.
//
//   - Every process hears a message, the one that published it by the same way as the
//     others (EveryInstanceHears), on exactly those topics that it asked for
//     (TopicsAreApart, PatternsMatch), as it was (PayloadsArriveAsTheyAre).
//   - A subscription gets a message once or not at all (OncePerSubscription), and those of
//     one origin in the order of their numbers, over all topics (OrderPerOrigin). The
//     numbers begin at 1 with each start of a process (IDsIdentify).
//   - From the first event on a subscription hears everything, or is told
//     (ConnectedComesFirst, NothingBeforeRun).
//   - Whatever is lost when a connection is lost, every subscription is told, also one that
//     is busy (LossIsTold); in random histories of losses under load no message is
//     missing without a notice that is later than the message and earlier than the
//     next one that is there (LossIsToldUnderLoad).
//   - A subscription that does not keep up misses one span of messages, and is told in its
//     place how many (SlowIsToldHowMany, SlowHearsAgain). It costs nobody else anything
//     (SlowHarmsNobody), and the process its queue (MemoryIsBounded).
//   - Close, the end of Run and the end of a context end what waits for them
//     (CloseEndsASubscription, EndOfRunEndsSubscriptions, EndOfTheContext), and everything
//     may be done by many at once (ConcurrentUse, ReadyAgreesWithNext, InvalidIsRefused).
//
// # Not promised
//
// That a message arrives. What must not be lost is a row, and who needs to act on it
// looks at rows; a message only makes it look sooner.
//
// An order between two origins, not even that of cause and effect: the answer to a message
// may arrive before it. That two subscriptions miss the same messages. That a notice is about
// something: it says that messages may have been missed, and often none was. That
// [Missed].Count is all: it is what is known.
//
// That what was heard is still so. Between the change and the message lie milliseconds,
// and between the loss of a connection and the notice seconds. Whether a SKU is sold
// out must never be decided by what was heard, nor by a copy that is kept up to date in this way:
// ask where it is decided.
//
// # Who hears what
//
// All processes hear everything that is published on their bus, and each sorts out what its
// own subscriptions want: so one sequence of numbers per origin tells of every loss, and a
// subscription costs the network nothing. The price is that a topic which one process wants
// costs all of them. What is much and for few is given a bus of its own.
//
// A topic can have a name that nobody has thought of before, as "order.CUSTOMER"; topics
// cost nothing either. It is how a subscription hears what concerns one customer without
// the queue that all others fill.
//
// # Failures and what they cost
//
//	a subscription is slow               its own messages, until it has read what it had
//	a process is slow, or stalls         as if its connection were lost, when the server gives it up
//	a connection is lost                 what was published until there is another one; all copies of
//	                                     the process are read again, and once more for each origin that lost something
//	a publisher cannot send              what it publishes meanwhile; everybody reads copies again
//	a process dies                       what it had not sent; everybody is told that it is silent
//	the server is away                   everything; copies are as old as the outage, and known to be
//	there is no server (membus)          other processes; each hears itself
//
// Notices come in swarms, as after an outage. Those that nobody has read yet become one;
// who reads expensively waits a moment before it does.
//
// # Server-sent events
//
// [ID] is origin, epoch and number: its String is fit for the id of an event, and tells
// whoever comes back with it from which origin it has heard how much. Of another epoch
// nothing that was kept is of use: the process has started anew.
//
// # Backends
//
// membus is for one process and for tests, redisbus for Redis. A backend brings messages to a
// [Fanout] in their order, numbers its own by an [Origin], and passes broadcasttest.
package broadcast
