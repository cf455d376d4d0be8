package redisx

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script and the name by which a server knows it.
type Script struct {
	text     string  // empty: it is not known
	sha      any     // a string
	together *Script // runs it for several calls
}

// NewScript returns a script of this text.
func NewScript(text string) Script {
	s, many := newScript(text), newScript(fmt.Sprintf(manyLua, text))
	s.together = &many
	return s
}

func newScript(text string) Script { return Script{text: text, sha: redis.NewScript(text).Hash()} }

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

// Script returns Text as a script, and gives it the last name.
func (f Folder) Script(names ...string) Script {
	s := NewScript(f.Text(names...))
	NameScript(s.sha, names[len(names)-1])
	NameScript(s.together.sha, names[len(names)-1])
	return s
}

var scriptNames sync.Map // by SHA-1

// NameScript gives a script a name, for its traces.
func NameScript(sha any, name string) { scriptNames.Store(sha, name) }

// ScriptName returns the name of a script, or an empty one.
func ScriptName(sha any) string {
	name, _ := scriptNames.Load(sha)
	text, _ := name.(string)
	return text
}

// LoadedScript is a script whose text is not known. A call of it fails if the server does not know the script.
func LoadedScript(sha string) Script { return Script{sha: sha} }

// Run calls the script once. A server that does not know it receives its text.
func (s Script) Run(ctx context.Context, rdb redis.UniversalClient, keys []string, args []any) (any, error) {
	c := &call{script: s, Request: Request{keys, args}}
	send(ctx, rdb, []*call{c})
	return c.Value, c.Err
}

// Once is a command that no client retries by itself: its caller knows whether that is safe. A redirect in a cluster is
// followed, because a redirected command was not executed.
type Once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (Once) NoRetry() bool { return true }
