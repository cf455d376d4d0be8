package broadcast

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxName  = 64
	maxTopic = 200
)

// ID identifies a message. Of two messages with the same Origin and Epoch the one with
// the smaller Seq was published first; otherwise there is no order.
type ID struct {
	Origin string // the name of the process that published it
	Epoch  string // random, and new whenever that process starts
	Seq    uint64 // counts what it has published since, over all topics, from 1
}

// String returns ORIGIN:EPOCH:SEQ, which is fit to be the id of a server-sent event.
func (id ID) String() string {
	return id.Origin + ":" + id.Epoch + ":" + strconv.FormatUint(id.Seq, 10)
}

// ParseID reads what [ID.String] wrote. It fails with ErrInvalid.
func ParseID(s string) (ID, error) {
	if end := strings.LastIndexByte(s, ':'); end >= 0 {
		if mid := strings.LastIndexByte(s[:end], ':'); mid >= 0 {
			seq, err := strconv.ParseUint(s[end+1:], 10, 64)
			id := ID{Origin: s[:mid], Epoch: s[mid+1 : end], Seq: seq}
			if err == nil && id.String() == s && validWord(id.Origin, maxName) && validWord(id.Epoch, maxName) {
				return id, nil
			}
		}
	}
	return ID{}, fmt.Errorf("%w: id %.100q: want ORIGIN:EPOCH:SEQ", ErrInvalid, s)
}

// Origin numbers the messages of one process. It is for backends, each of which calls
// it under a mutex of its own, so that numbers are given in the order of sending.
type Origin struct {
	last ID
}

// NewOrigin returns an Origin with a new epoch. The name has 1 to 64 printable ASCII
// characters without spaces; an empty one is replaced by a random one.
func NewOrigin(name string) (*Origin, error) {
	if name == "" {
		name = rand.Text()
	}
	if !validWord(name, maxName) {
		return nil, fmt.Errorf("%w: instance %.100q: give 1 to %d printable ASCII characters without spaces", ErrInvalid, name, maxName)
	}
	return &Origin{ID{Origin: name, Epoch: rand.Text()}}, nil
}

// Last is the identity of the last message that was numbered. Its Seq is 0 if there is none.
func (o *Origin) Last() ID { return o.last }

// Number makes a message, or fails with ErrInvalid.
func (o *Origin) Number(topic, payload string) (Message, error) {
	if !validTopic(topic) {
		return Message{}, fmt.Errorf("%w: topic %.100q: give 1 to %d printable ASCII characters without spaces and stars", ErrInvalid, topic, maxTopic)
	}
	if len(payload) > MaxPayload {
		return Message{}, fmt.Errorf("%w: topic %s: a payload of %d bytes: give at most %d", ErrInvalid, topic, len(payload), MaxPayload)
	}
	o.last.Seq++
	return Message{ID: o.last, Topic: topic, Payload: payload}, nil
}

func validTopic(s string) bool { return validWord(s, maxTopic) && !strings.Contains(s, "*") }

// validWord says whether s can stand between two spaces.
func validWord(s string, most int) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}
