package broadcast

import (
	"context"
	"errors"
)

// MaxPayload bounds a payload, in bytes. A message says what has happened; who needs
// more than that reads it where it is kept.
const MaxPayload = 8 << 10

// Errors of a Bus and its subscriptions.
var (
	// ErrInvalid says that an argument is outside its bounds. Nothing has changed.
	ErrInvalid = errors.New("broadcast: invalid argument")

	// ErrFull says that a message was dropped because too many wait to be sent. It has
	// a number, so that subscribers are told of a gap.
	ErrFull = errors.New("broadcast: too many messages wait to be sent")

	// ErrClosed says that the Bus or the Subscription has ended.
	ErrClosed = errors.New("broadcast: closed")
)

// Bus tells all processes on it what happens in one of them, at most once. It is safe
// for concurrent use.
type Bus interface {
	// Publish tells every process, the own one like the others. It does not block and
	// does no input or output: the message waits in a bounded queue, from which Run sends
	// it. That is why it takes no context, and why it may stand behind a commit.
	//
	// It fails with ErrFull if the queue is full, which the caller can ignore, because
	// those who miss the message are told; with ErrInvalid if the topic is not one or the
	// payload is longer than MaxPayload; and with ErrClosed when Run has ended. That it
	// does not fail says nothing about who will hear it.
	Publish(topic, payload string) error

	// Subscribe returns what is published on all topics that match one of the patterns,
	// each message once. A pattern is a topic; or the beginning of topics up to a dot,
	// followed by a star, as "stock.*"; or a star alone, for everything.
	//
	// It does not block. The first event is a Missed, with the reason Connected unless the
	// connection is lost before it is read. It comes as soon as messages can arrive, which
	// is at once if they can already. Whatever any process publishes after that is
	// delivered, or a later Missed says that it may not have been.
	//
	// It fails with ErrInvalid if there is no pattern, or one that is none, and with
	// ErrClosed when Run has ended. A subscription costs the server nothing.
	Subscribe(patterns ...string) (*Subscription, error)

	// Stats returns counters.
	Stats() Stats

	// Run sends and receives until ctx ends, and returns nil then. It is called once, and
	// nothing arrives without it. At its end subscriptions end, and what still waits to
	// be sent is sent, for a bounded time.
	Run(ctx context.Context) error
}

// Message is what one process told all.
type Message struct {
	ID      ID
	Topic   string
	Payload string
}

// Stats are the counters of one process. Those that are not states only grow.
type Stats struct {
	Live          bool // whether messages arrive
	Subscriptions int

	Published uint64 // numbers given, those of messages that were dropped too
	Dropped   uint64 // of them not sent, because too many waited
	Failed    uint64 // of them sent without an acknowledgement; some may have arrived

	Received   uint64 // messages that arrived, the own ones too
	Overflowed uint64 // messages that a subscription missed because it was slow, once for each
	Missing    uint64 // numbers of other messages that never came, as far as known
	Losses     uint64 // how often messages ceased to arrive
	Foreign    uint64 // what arrived and could not be read
}
