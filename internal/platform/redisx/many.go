package redisx

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// manyLua runs a script for several calls, one after the other. To begin a script costs a server more than most
// scripts do. A call that fails fails alone. go-redis has types for some errors, and does not read a list to its end that
// has one, so each error has a mark before its code.
//
// KEYS those of each call  ARGV[1] number of calls  ARGV[2...] the arguments of each call
// Returns the reply of each call.
const manyLua = `
local function script(KEYS, ARGV)
%s
end
local replies, n = {}, tonumber(ARGV[1])
local keys, args = #KEYS / n, (#ARGV - 1) / n
for i = 0, n - 1 do
  local ok, reply = pcall(script, {unpack(KEYS, i * keys + 1, (i + 1) * keys)}, {unpack(ARGV, i * args + 2, (i + 1) * args + 1)})
  if not ok and type(reply) ~= 'table' then
    reply = {err = string.find(reply, '^%%u+ ') and reply or 'ERR ' .. reply}
  end
  if type(reply) == 'table' and reply.err then
    reply = {err = '!' .. reply.err}
  end
  replies[i + 1] = reply or false -- nil would end the list
end
return replies
`

// many makes calls of a script that are alike as one command, and reports whether it did: their numbers of keys and
// arguments may differ, or the server may be a cluster that pretends to be one server, which refuses keys of several
// slots.
func many(ctx context.Context, rdb redis.UniversalClient, calls []*call) bool {
	first, n := calls[0], len(calls)
	all := &call{script: *first.script.together}
	all.Args = []any{uint32(n)} // Tests recognize it by its type, which no other argument has.
	for _, c := range calls {
		if len(c.Keys) != len(first.Keys) || len(c.Args) != len(first.Args) {
			return false
		}
		all.Keys, all.Args = append(all.Keys, c.Keys...), append(all.Args, c.Args...)
	}
	send(ctx, rdb, []*call{all})
	if redis.HasErrorPrefix(all.Err, "CROSSSLOT") {
		return false
	}
	values, _ := all.Value.([]any)
	if all.Err == nil && len(values) != n {
		all.Err = fmt.Errorf("redisx: reply %v to %d calls", all.Value, n)
	}
	for i, c := range calls {
		if c.Err = all.Err; c.Err != nil {
			continue
		}
		switch v := values[i].(type) {
		case error:
			c.Err = refusal(strings.TrimPrefix(v.Error(), "!"))
		case nil:
			c.Err = redis.Nil
		default:
			c.Value = v
		}
	}
	return true
}

// refusal is an error of a call that shared a command.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// RedisError implements [redis.Error].
func (refusal) RedisError() {}
