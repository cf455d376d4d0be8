package dlocktest

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// byKey parts a history into the histories of its keys, which do not depend on
// each other.
func byKey(ops []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	index := map[string]int{}
	for _, op := range ops {
		key := op.Input.(Call).Key
		i, ok := index[key]
		if !ok {
			i = len(parts)
			index[key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// describe is one operation in a line.
func describe(input, output any) string {
	c, o := input.(Call), output.(Outcome)
	text := fmt.Sprintf("%s %s", c.Op, c.Key)
	switch c.Op {
	case OpTry, OpAcquire, OpWake, OpResize:
		text += fmt.Sprintf(" n=%d", c.N)
	case OpRelease, OpExpire, OpSleep, OpSignal, OpBroadcast:
		text += " of " + short(c.Owner)
	}
	if c.Op == OpExpire {
		return text
	}
	if c.Next != "" {
		text += " before " + short(c.Next)
	}
	text += ": " + string(o.Result)
	if o.Fence.Owner != "" {
		text += fmt.Sprintf(" %s token %d", short(o.owner()), o.Fence.Token)
	}
	if o.Queued {
		text += " (others wait)"
	}
	return text
}

// short is enough of an owner to distinguish it from others, whichever end is random.
func short(owner string) string {
	if len(owner) <= 12 {
		return owner
	}
	return owner[:5] + ".." + owner[len(owner)-5:]
}
