package redislock

import (
	"embed"

	"example.com/shop/internal/platform/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

// The scripts are constants that cannot be declared so. Their calls:
//
//	acquire       free:   EXISTS lock queue, TIME, SET fence GET, SET lock    (take.lua)
//	              again:  EXISTS, GET lock, PEXPIRE lock            the same owner gets the same grant
//	              waits:  EXISTS, GET lock, TIME, ZSCORE, ZRANGE, ZADD, HSET, 2 PEXPIRE, PTTL lock
//	release       free:   GET lock, EXISTS queue, DEL lock          (free.lua)
//	              waiter: 2 GET lock, 2 EXISTS queue, TIME, ZRANGE, HGET, ZREM, HDEL, GET fence, SET fence, SET lock, PUBLISH
//	renew         GET lock, PEXPIRE lock; if that is gone GET fence; one command for up to 100 locks, in a Cluster a pipeline
//	abandon       ZREM, HDEL, GET lock; if it holds the lock as release
//	force         GET lock, GET fence, TIME, SET fence, PUBLISH, then as release
//	inspect       GET lock, PTTL lock, GET fence, ZCARD queue
//	raise_counter GET fence, SET fence
//
// Scripts with a queue evict at most four dead waiters. A script that the server does not know costs a second round
// trip, once.
var (
	acquireScript      = lua.Script("take", "queue", "acquire")
	releaseScript      = lua.Script("free", "queue", "release")
	abandonScript      = lua.Script("queue", "abandon")
	forceScript        = lua.Script("queue", "force")
	renewScript        = lua.Script("renew")
	inspectScript      = lua.Script("inspect")
	raiseCounterScript = lua.Script("raise_counter")
)

// The scripts are constants that cannot be declared so.
var (
	condWaitScript    = lua.Script("queue", "cond_common", "cond_wait")
	condCheckScript   = lua.Script("queue", "cond_common", "cond_check", "acquire")
	condSignalScript  = lua.Script("queue", "cond_common", "cond_signal")
	condAbandonScript = lua.Script("queue", "cond_common", "cond_abandon")
)
