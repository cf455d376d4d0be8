package redisx

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script and the name by which a server knows it.
type Script struct {
	text, sha string
	many      *Script // runs it for several calls; nil if the text is not known
}

// NewScript returns a script of this text.
func NewScript(text string) Script {
	s, many := newScript(text), newScript(fmt.Sprintf(manyLua, text))
	s.many = &many
	return s
}

// Folder is a folder lua with files that are parts of scripts.
type Folder struct {
	Files fs.ReadFileFS
}

// Text joins the files of these names, which have no .lua. It panics if one does not exist.
func (f Folder) Text(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		part, err := f.Files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		text.Write(part)
		text.WriteByte('\n')
	}
	return text.String()
}

// Script returns Text as a script.
func (f Folder) Script(names ...string) Script { return NewScript(f.Text(names...)) }

func newScript(text string) Script { return Script{text: text, sha: redis.NewScript(text).Hash()} }

// LoadedScript is a script whose text is not known. A call of it fails if the server does not know the script.
func LoadedScript(sha string) Script { return Script{sha: sha} }

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

// Run calls the script once. A server that does not know it receives its text.
func (s Script) Run(ctx context.Context, rdb redis.UniversalClient, keys []string, args []any) (any, error) {
	all := s.command(keys, args)
	reply, err := process(ctx, rdb, all)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		all[0], all[1] = "eval", s.text
		reply, err = process(ctx, rdb, all)
	}
	return reply, err
}

// command returns the arguments of EVALSHA.
func (s Script) command(keys []string, args []any) []any {
	all := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", s.sha, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return append(all, args...)
}

func process(ctx context.Context, rdb redis.UniversalClient, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	rdb.Process(ctx, Once{cmd}) //nolint:errcheck // The command has the error.
	return cmd.Result()
}

// Once is a command that no client retries by itself: its caller knows whether that is safe. A redirect in a cluster is
// followed, because a redirected command was not executed.
type Once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (Once) NoRetry() bool { return true }
