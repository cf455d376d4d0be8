package redisbus

import (
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/broadcast"
)

func frames(sizes ...int) (all []frame) {
	for i, n := range sizes {
		id := broadcast.ID{Origin: "a", Epoch: "E", Seq: uint64(i + 1)}
		all = append(all, frame{say, broadcast.Message{ID: id, Topic: "t", Payload: strings.Repeat("ä ", n)}})
	}
	return append(all, frame{bye, broadcast.Message{ID: broadcast.ID{Origin: "a", Epoch: "E", Seq: uint64(len(sizes))}}})
}

// What is packed comes out as it was, in its order, and no packet is larger than it may be.
func TestPackets(t *testing.T) {
	t.Parallel()
	for name, all := range map[string][]frame{
		"none": nil, "one": frames(), "two": frames(3), "empty payloads": frames(0, 0, 0),
		"many": frames(make([]int, 300)...), "large": frames(5000, 4000, 12_000, 2, 1, 10_900),
	} {
		var got []frame
		var messages uint64
		packets := pack(all)
		for _, p := range packets {
			messages += p.messages
			if len(p.text) > packetBytes+packetFrames*8 && strings.HasPrefix(p.text, packed) {
				t.Errorf("%s: a packet of %d bytes", name, len(p.text))
			}
			n := len(got)
			if !unpack(p.text, func(f frame) { got = append(got, f) }) {
				t.Errorf("%s: %.100q cannot be read", name, p.text)
			}
			if len(got)-n > packetFrames {
				t.Errorf("%s: a packet of %d frames", name, len(got)-n)
			}
		}
		if !slices.Equal(got, all) || messages != uint64(max(0, len(all)-1)) {
			t.Errorf("%s: %d frames with %d messages became %d in %d packets", name, len(all), messages, len(got), len(packets))
		}
		if few := 1 + len(all)/packetFrames; name != "large" && len(packets) > few {
			t.Errorf("%s: %d packets, want %d at most", name, len(packets), few)
		}
	}
}

// FuzzUnpack: whatever arrives, it is refused or says the same again.
func FuzzUnpack(f *testing.F) {
	f.Add("1p 12 1m a E 1 t x 8 1b a E 1")
	f.Add("1p 8 1b a E 1 ")
	f.Add("1p 9 1b a E 1")
	f.Add("1p 99 1b a E 1")
	f.Add("1p -1 1b a E 1")
	f.Add("1p ")
	f.Add("1p 10 1p 1 x 1 y")
	f.Fuzz(func(t *testing.T, text string) {
		var got, again []frame
		if !unpack(text, func(f frame) { got = append(got, f) }) {
			return
		}
		for _, p := range pack(got) {
			if !unpack(p.text, func(f frame) { again = append(again, f) }) {
				t.Errorf("%q cannot be read", p.text)
			}
		}
		if !slices.Equal(got, again) {
			t.Errorf("%q is %+v, and that is %+v", text, got, again)
		}
	})
}
