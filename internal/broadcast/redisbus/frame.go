package redisbus

import (
	"strconv"
	"strings"

	"example.com/shop/internal/broadcast"
)

// kind is what a frame is.
type kind string

// Kinds of frames, each with the version of the format.
const (
	say kind = "1m" // a message
	// A beat says that its origin is alive, and by its number which message was the last:
	// without it the loss of that one would never be noticed.
	beat kind = "1b"
	// A hello is a beat of who has just begun to listen. The others answer with beats, from which it
	// learns who is there and how far they are.
	hello kind = "1h"
	bye   kind = "1x" // a beat, after which there will be no more
)

// frame is what goes through the channel, as text:
//
//	1m ORIGIN EPOCH SEQ TOPIC PAYLOAD
//	1b ORIGIN EPOCH SEQ
//	1h ORIGIN EPOCH SEQ
//	1x ORIGIN EPOCH SEQ
type frame struct {
	kind    kind
	message broadcast.Message // of a beat the ID alone
}

func (f frame) String() string {
	id := f.message.ID
	head := string(f.kind) + " " + id.Origin + " " + id.Epoch + " " + strconv.FormatUint(id.Seq, 10)
	if f.kind != say {
		return head
	}
	return head + " " + f.message.Topic + " " + f.message.Payload
}

// parse reads what String wrote. It reports false for everything else, as the frames of
// a later version.
func parse(text string) (f frame, ok bool) {
	word := func() (word string) {
		word, text, _ = strings.Cut(text, " ")
		return word
	}
	f.kind = kind(word())
	if f.kind != say && f.kind != beat && f.kind != hello && f.kind != bye {
		return frame{}, false
	}
	f.message.ID.Origin, f.message.ID.Epoch = word(), word()
	seq, err := strconv.ParseUint(word(), 10, 64)
	f.message.ID.Seq = seq
	if f.kind == say {
		f.message.Topic = word()
		f.message.Payload = text
	}
	id := f.message.ID
	return f, err == nil && id.Origin != "" && id.Epoch != "" && (f.kind != say || seq > 0 && f.message.Topic != "")
}
