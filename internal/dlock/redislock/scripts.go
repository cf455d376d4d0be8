package redislock

import (
	_ "embed" // the scripts are files
	"fmt"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

//go:embed lua/queue.lua
var queueLua string

//go:embed lua/take.lua
var takeLua string

//go:embed lua/free.lua
var freeLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/abandon.lua
var abandonLua string

//go:embed lua/all.lua
var allLua string

//go:embed lua/force.lua
var forceLua string

//go:embed lua/inspect.lua
var inspectLua string

//go:embed lua/raise_counter.lua
var raiseCounterLua string

// blockLua precedes the scripts that grant the lock: how many fencing tokens a grant has.
var blockLua = fmt.Sprintf("local block = %d\n", driver.TurnsPerGrant)

// The scripts are constants that cannot be declared so. Their calls:
//
//	acquire       free:   EXISTS lock queue, TIME, SET fence GET, SET lock    (take.lua)
//	              again:  EXISTS, GET lock, PEXPIRE lock            the same owner gets the same grant
//	              waits:  EXISTS, GET lock, TIME, ZSCORE, ZRANGE, ZADD, HSET, 2 PEXPIRE, PTTL lock
//	release       free:   GET lock, EXISTS queue, DEL lock          (free.lua)
//	              waiter: 2 GET lock, 2 EXISTS queue, TIME, ZRANGE, HGET, ZREM, HDEL, GET fence, SET fence, SET lock, PUBLISH
//	renew         for up to 100 locks: GET lock, PEXPIRE lock; if that is gone GET fence
//	abandon       ZREM, HDEL, GET lock; if it holds the lock as release
//	all           for each lock GET and EXISTS queue, then as acquire
//	force         GET lock, GET fence, TIME, SET fence, PUBLISH, then as release; in a Cluster the message goes to every node
//	inspect       GET lock, PTTL lock, GET fence, ZCARD queue
//	raise_counter GET fence, SET fence
//
// Those with a queue evict at most four dead waiters. A script that the server does not know costs a second round trip, once.
var (
	acquireScript      = redisx.NewScript(blockLua, takeLua, queueLua, acquireLua)
	releaseScript      = redisx.NewScript(freeLua, blockLua, queueLua, releaseLua)
	abandonScript      = redisx.NewScript(blockLua, queueLua, abandonLua)
	allScript          = redisx.NewScript(blockLua, queueLua, allLua)
	forceScript        = redisx.NewScript(blockLua, queueLua, forceLua)
	renewScript        = redisx.NewScript(renewLua)
	inspectScript      = redisx.NewScript(inspectLua)
	raiseCounterScript = redisx.NewScript(raiseCounterLua)
)

//go:embed lua/cond_common.lua
var condCommonLua string

//go:embed lua/cond_wait.lua
var condWaitLua string

//go:embed lua/cond_check.lua
var condCheckLua string

//go:embed lua/cond_signal.lua
var condSignalLua string

//go:embed lua/cond_abandon.lua
var condAbandonLua string

// The scripts are constants that cannot be declared so.
var (
	condWaitScript    = redisx.NewScript(blockLua, queueLua, condCommonLua, condWaitLua)
	condCheckScript   = redisx.NewScript(blockLua, queueLua, condCommonLua, condCheckLua, acquireLua)
	condSignalScript  = redisx.NewScript(blockLua, queueLua, condCommonLua, condSignalLua)
	condAbandonScript = redisx.NewScript(blockLua, queueLua, condCommonLua, condAbandonLua)
)
