package redislock

import _ "embed" // the scripts are files

//go:embed queue.lua
var queueLua string

//go:embed take.lua
var takeLua string

//go:embed free.lua
var freeLua string

//go:embed acquire.lua
var acquireLua string

//go:embed renew.lua
var renewLua string

//go:embed release.lua
var releaseLua string

//go:embed abandon.lua
var abandonLua string

//go:embed all.lua
var allLua string

//go:embed force.lua
var forceLua string

//go:embed inspect.lua
var inspectLua string

//go:embed reseed.lua
var reseedLua string

// The scripts are constants that cannot be declared so.
var (
	acquireScript = newScript(takeLua, queueLua, acquireLua)
	releaseScript = newScript(freeLua, queueLua, releaseLua)
	abandonScript = newScript(queueLua, abandonLua)
	allScript     = newScript(queueLua, allLua)
	forceScript   = newScript(queueLua, forceLua)
	renewScript   = newScript(renewLua)
	inspectScript = newScript(inspectLua)
	reseedScript  = newScript(reseedLua)
)

// Verdicts of renew.lua and release.lua.
const (
	verdictGone   = 0
	verdictTaken  = -1
	verdictForced = -2
)
