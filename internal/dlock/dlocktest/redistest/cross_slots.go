package redistest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// crossSlots counts commands that a cluster refuses, or would refuse, because of their keys.
type crossSlots struct{ n atomic.Int64 }

func (h *crossSlots) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	err := send(ctx, cmds)
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "CROSSSLOT") || redis.HasErrorPrefix(err, "CROSSSLOT") || !oneTag(cmd) {
			h.n.Add(1)
		}
	}
	return err
}

// Calls returns how many calls of a script a command has. Only redisx puts an argument of type uint32 into a command
// of several calls: their number.
func Calls(cmd redis.Cmder) int {
	args := cmd.Args()
	if at := 3 + args[2].(int); at < len(args) {
		if n, ok := args[at].(uint32); ok {
			return int(n)
		}
	}
	return 1
}

// oneTag reports whether all keys of each call of a script have the same hash tag. Other commands have one key.
func oneTag(cmd redis.Cmder) bool {
	args := cmd.Args()
	if !strings.HasPrefix(cmd.Name(), "eval") {
		return true
	}
	keys := args[3:][:args[2].(int)]
	tag := func(key any) string {
		_, rest, _ := strings.Cut(key.(string), "{")
		name, _, _ := strings.Cut(rest, "}")
		return name
	}
	for of := range slices.Chunk(keys, len(keys)/Calls(cmd)) {
		if slices.ContainsFunc(of, func(key any) bool { return tag(key) != tag(of[0]) || tag(key) == "" }) {
			return false
		}
	}
	return true
}
