// Package redisbus is [broadcast.Bus] on the pub/sub of Redis: standalone, behind Sentinel,
// or a Cluster, where it is sharded.
//
// # Data
//
// There is one channel, Config.Channel, "shop:broadcast:{all}" unless it is told otherwise.
// Nothing is stored. What goes through it is text (FramesAsDocumented):
//
//	1m ORIGIN EPOCH SEQ TOPIC PAYLOAD   a message: PUBLISH, in a Cluster SPUBLISH
//	1b ORIGIN EPOCH SEQ                 a beat: ORIGIN is alive, and its last message was SEQ
//	1h ORIGIN EPOCH SEQ                 the same, and ORIGIN has just begun to listen: the others answer with beats
//	1x ORIGIN EPOCH SEQ                 the same, and there will be no more
//	1p LENGTH FRAME LENGTH FRAME ...    several of these at once, with their lengths in bytes
//
// All messages go through one channel, so that one connection is enough for all
// subscriptions of a process (OneConnection), and so that numbers without gaps are
// everything that was said. In a Cluster the braces keep it in one slot: one master has all of
// the traffic, and the others none, which plain pub/sub in a Cluster would not achieve. Two buses
// are two channels (ChannelsAreApart). The number of the database in the address of the
// client means nothing to channels.
//
// # How a loss is noticed
//
// The channels of go-redis hide that a connection was lost (TrapOfTheClient). This package
// therefore reads from the connection, and lets go of it at the first sign of anything:
//
//   - It ends: the server was restarted (ServerRestarts), threw the client out, by CLIENT
//     KILL (LossIsToldUnderLoad) or because it read too slowly (OutputBufferKillIsTold),
//     or was replaced (BusBehindSentinel, BusOnCluster).
//   - Nothing arrives on it for Config.Silence, though a PING is sent three times as often
//     (BlackHoleIsTold, SilentServerIsTold).
//   - The process does not hear what it has said itself, though the server took it: then
//     the connection lives, and ends at a server to which nobody else speaks, as a
//     master that was replaced and does not know it (UnheardIsTold).
//   - The server ends the subscription, as in a Cluster when the slot moves
//     (EndOfTheSubscriptionIsTold), or confirms it a second time, which says that the
//     client has another connection behind our back (SecondConfirmationIsTold).
//
// All subscriptions are then told that they are disconnected, and that they are connected
// when the server has confirmed a new one. No connection is repaired.
//
// What is lost elsewhere shows by the numbers. Of each origin, in each of its epochs, the
// last number is remembered: a greater one than the next is a gap, and what is told of it
// comes before the message that shows it; one that is not greater came too late or twice, and
// is dropped (StrangeFrames, Origins). An idle process sends a beat after at most two thirds
// of Config.Silence, so that the loss of a last message shows, too (LostTailIsTold). An origin
// that is silent for four times Config.Silence, and has not said goodbye, may have died
// with something to say: that is told, once (DeadOriginIsTold).
//
// The first number that is heard of an origin is a gap if it is not 1, because what came
// before may have been published after a subscription began. A process that has just started would
// so be told of a gap for each of the others, though it has missed nothing. So it says hello first, and listens for
// Config.Settle before its subscriptions do: what it is answered until then tells how far the others are, and what
// comes later and is not the next is a gap (NewcomerIsToldNothing, UnheardNewcomerIsTold).
//
// # Sending
//
// Publish puts into the outbox and returns (PublishNeverBlocks). One goroutine sends what is there, at
// most 256 messages by pipeline and 64 by PUBLISH, and waits for the answer before it sends the next: so
// messages arrive in the order of their numbers, and the faster they come, the less each
// costs, the server too. A pipeline that fails is not sent again, because some of it may have
// arrived; if there was no connection nothing has, and it waits (UnsentMessagesAreSentLater). If the outbox is full the message is dropped, and counted; its number is missing
// then, which tells everybody. Run sends at its end what is left (RunSendsTheRest).
//
// # Bounds
//
// With the defaults, on a machine that keeps up:
//
//	told that a connection has ended      at once
//	told that a connection is silent      3 s after the last sign of life: Silence
//	told that it ends at a wrong server   5 s: Silence, and a beat
//	hears for the first time              100 ms after the server has confirmed that it listens: Settle
//	hears again                           150 ms after the server can be reached, and a Timeout, 1 s, if an attempt is stuck
//	told of a last message that was lost  2 s after the sender can send again: a beat
//	told that an origin has died          12 s: four times Silence
//	Publish                               does not wait
//	Run at its end                        2 s: twice Timeout
//	memory                                Outbox times 8 KiB; per subscription Queue times 80 B, and the messages, which are shared
//	Redis, idle                           a PING per process and second, and a beat for every process, in two seconds
//
// A beat goes to all, so that n processes cost n² deliveries in two seconds: ten processes
// 50 in a second, a hundred 5,000.
//
// # Goroutines
//
// [Bus.Run] starts all and waits for all: one that receives, with another beside it that
// watches the connection, and one that sends.
//
// # Client and server
//
// The client needs ContextTimeoutEnabled, so that a silent network ends with Config.Timeout,
// and MaxRetries -1, so that a message is not sent twice. [New] refuses clients without these
// (NewRefuses). The client may be shared. Its ClientName is that of the connection.
//
// The server needs Redis 5, in a Cluster Redis 7. An ACL must allow the channel, and SUBSCRIBE and
// PUBLISH, or SSUBSCRIBE and SPUBLISH; a process that may do only one of them does that
// one (RefusedSubscription). What is waiting for a process may use as much memory of the
// server as client-output-buffer-limit allows to pubsub, 32 MB unless it is told otherwise.
package redisbus
