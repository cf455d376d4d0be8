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

// many makes calls that are alike as one command, and reports whether it did: their numbers of keys and arguments may
// differ, or the server may be a cluster that pretends to be one server, which refuses keys of several slots.
func (s Script) many(ctx context.Context, rdb redis.UniversalClient, requests []Request, replies []Reply) bool {
	first, n := requests[0], len(requests)
	all := Request{make([]string, 0, n*len(first.Keys)), make([]any, 1, 1+n*len(first.Args))}
	all.Args[0] = uint32(n) // Tests recognize it by its type, which no other argument has.
	for _, r := range requests {
		if len(r.Keys) != len(first.Keys) || len(r.Args) != len(first.Args) {
			return false
		}
		all.Keys, all.Args = append(all.Keys, r.Keys...), append(all.Args, r.Args...)
	}
	reply, err := s.together.Run(ctx, rdb, all.Keys, all.Args)
	if redis.HasErrorPrefix(err, "CROSSSLOT") {
		return false
	}
	values, ok := reply.([]any)
	if err == nil && (!ok || len(values) != n) {
		err = fmt.Errorf("redisx: reply %v to %d calls", reply, n)
	}
	for i := range replies {
		replies[i].Err = err
		if err != nil {
			continue
		}
		switch v := values[i].(type) {
		case error:
			replies[i].Err = unmarked(v)
		case nil:
			replies[i].Err = redis.Nil
		default:
			replies[i].Value = v
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

// unmarked takes the mark away that manyLua has set before the code of an error.
func unmarked(err error) error { return refusal(strings.TrimPrefix(err.Error(), "!")) }
