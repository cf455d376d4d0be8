package redislock

import (
	_ "embed" // the scripts are files

	"example.com/shop/internal/redisx"
)

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

//go:embed raise_counter.lua
var raiseCounterLua string

// The scripts are constants that cannot be declared so.
var (
	acquireScript      = redisx.NewScript(takeLua, queueLua, acquireLua)
	releaseScript      = redisx.NewScript(freeLua, queueLua, releaseLua)
	abandonScript      = redisx.NewScript(queueLua, abandonLua)
	allScript          = redisx.NewScript(queueLua, allLua)
	forceScript        = redisx.NewScript(queueLua, forceLua)
	renewScript        = redisx.NewScript(renewLua)
	inspectScript      = redisx.NewScript(inspectLua)
	raiseCounterScript = redisx.NewScript(raiseCounterLua)
)

//go:embed cond_common.lua
var condCommonLua string

//go:embed cond_wait.lua
var condWaitLua string

//go:embed cond_check.lua
var condCheckLua string

//go:embed cond_signal.lua
var condSignalLua string

//go:embed cond_abandon.lua
var condAbandonLua string

// The scripts are constants that cannot be declared so.
var (
	condWaitScript    = redisx.NewScript(queueLua, condCommonLua, condWaitLua)
	condCheckScript   = redisx.NewScript(queueLua, condCommonLua, condCheckLua, acquireLua)
	condSignalScript  = redisx.NewScript(queueLua, condCommonLua, condSignalLua)
	condAbandonScript = redisx.NewScript(queueLua, condCommonLua, condAbandonLua)
)
