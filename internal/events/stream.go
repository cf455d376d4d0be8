package events

import (
	"bufio"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// maxLine bounds a line of a stream, in bytes.
const maxLine = 1 << 20

// Message is one message of a stream of server-sent events.
type Message struct {
	ID    string        // the latest that was notified, with this message or before
	Kind  string        // the field event; empty in a heartbeat
	Data  string        // empty in a heartbeat
	Retry time.Duration // how long to wait before coming back; 0 if the stream has not said so
}

// Messages reads a stream of server-sent events as they come. Heartbeats are messages without
// data. The sequence ends with the error of r, which may be [io.EOF]; half a message is none.
func Messages(r io.Reader) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		var m Message
		for lines.Scan() {
			if lines.Text() == "" {
				if !yield(m, nil) {
					return
				}
				m.Kind, m.Data = "", ""
				continue
			}
			m.field(lines.Text())
		}
		err := lines.Err()
		if err == nil {
			err = io.EOF
		}
		yield(m, err)
	}
}

func (m *Message) field(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "id":
		m.ID = value
	case "event":
		m.Kind = value
	case "data":
		if m.Data != "" {
			m.Data += "\n"
		}
		m.Data += value
	case "retry":
		if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
			m.Retry = time.Duration(ms) * time.Millisecond
		}
	}
}
