package redisbus

import (
	"strconv"
	"strings"
)

// Bounds of a packet. What a server has to send on at once must not keep it from others.
const (
	packetFrames = 64
	packetBytes  = 32 << 10
)

// packed begins a packet of several frames:
//
//	1p LENGTH FRAME LENGTH FRAME ...
//
// with the lengths in bytes. A single frame goes as it is.
const packed = "1p"

// packet is what is published at once.
type packet struct {
	text     string
	messages uint64 // that are in it
}

// pack returns frames as packets, in their order.
func pack(frames []frame) (all []packet) {
	for len(frames) > 0 {
		text := frames[0].String()
		p, n := packet{text: text, messages: frames[0].messages()}, 1
		var b strings.Builder
		for ; n < len(frames) && n < packetFrames; n++ {
			next := frames[n].String()
			if max(b.Len(), len(text))+len(next) > packetBytes {
				break
			}
			if n == 1 {
				b.WriteString(packed)
				addTo(&b, text)
			}
			addTo(&b, next)
			p.messages += frames[n].messages()
		}
		if n > 1 {
			p.text = b.String()
		}
		all, frames = append(all, p), frames[n:]
	}
	return all
}

func addTo(b *strings.Builder, text string) {
	b.WriteByte(' ')
	b.WriteString(strconv.Itoa(len(text)))
	b.WriteByte(' ')
	b.WriteString(text)
}

// messages is how many messages are lost with f.
func (f frame) messages() uint64 {
	if f.kind == say {
		return 1
	}
	return 0
}

// unpack calls each with the frames that pack has put into text. It reports false, behind those
// that can be read, if there is something else.
func unpack(text string, each func(frame)) (ok bool) {
	rest, several := strings.CutPrefix(text, packed+" ")
	if !several {
		f, ok := parse(text)
		if ok {
			each(f)
		}
		return ok
	}
	for {
		length, after, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseUint(length, 10, 32)
		if err != nil || n > uint64(len(after)) {
			return false
		}
		f, ok := parse(after[:n])
		if !ok {
			return false
		}
		each(f)
		if rest = after[n:]; rest == "" {
			return true
		}
		if rest, ok = strings.CutPrefix(rest, " "); !ok {
			return false
		}
	}
}
