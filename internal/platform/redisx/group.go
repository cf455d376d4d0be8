package redisx

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// group are calls of one script that are sent as one command.
type group []*Call

// group joins the calls of each script, and leaves calls with a common key in their order. In a cluster a command has the
// keys of one slot, so each call is a command of its own. A cluster may pretend to be a single server.
func (p *pipeline) group(calls []*Call) []group {
	var groups []group
	if p.apart || len(calls) == 1 {
		for i := range calls {
			groups = append(groups, calls[i:i+1])
		}
		return groups
	}
	for _, c := range calls {
		at := c.join(groups, p.last)
		if at == len(groups) {
			groups = append(groups, make(group, 0, len(calls)))
		}
		groups[at] = append(groups[at], c)
		for _, key := range c.keys {
			p.last[key] = at
		}
	}
	clear(p.last)
	return groups
}

// join returns which group c may be sent with. It has the same shape, and comes after, or is, the last with a key of c.
func (c *Call) join(groups []group, last map[string]int) int {
	from := 0
	for _, key := range c.keys {
		from = max(from, last[key])
	}
	for at := from; at < len(groups) && c.script.many != nil; at++ {
		first := groups[at][0]
		if first.script.sha == c.script.sha && len(first.keys) == len(c.keys) && len(first.args) == len(c.args) {
			return at
		}
	}
	return len(groups)
}

// command returns the arguments of EVALSHA or EVAL.
func (g group) command(name string) []any {
	first, n := g[0], len(g)
	script, args := first.script, make([]any, 0, 4+n*(len(first.keys)+len(first.args)))
	if n > 1 {
		script = *script.many
	}
	called := script.sha
	if name == "eval" {
		called = script.text
	}
	args = append(args, name, called, n*len(first.keys))
	for _, c := range g {
		for _, key := range c.keys {
			args = append(args, key)
		}
	}
	if n > 1 {
		args = append(args, uint32(n)) // Tests recognize it by its type, which no other argument has.
	}
	for _, c := range g {
		args = append(args, c.args...)
	}
	return args
}

// finish gives each call its reply.
func (g group) finish(reply any, err error) {
	if len(g) == 1 {
		g[0].finish(reply, err)
		return
	}
	replies, ok := reply.([]any)
	if err == nil && (!ok || len(replies) != len(g)) {
		err = fmt.Errorf("redisx: reply %v to %d calls", reply, len(g))
	}
	for i, c := range g {
		if err != nil {
			c.finish(nil, err)
			continue
		}
		switch r := replies[i].(type) {
		case error:
			c.finish(nil, unmarked(r))
		case nil:
			c.finish(nil, redis.Nil)
		default:
			c.finish(r, nil)
		}
	}
}

// refusal is an error of a call that shared a command.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// RedisError implements [redis.Error].
func (refusal) RedisError() {}

// unmarked takes the mark away that manyLua has set before the code of an error.
func unmarked(err error) error { return refusal(strings.TrimPrefix(err.Error(), "!")) }
