package redislock

import _ "embed" // the scripts are files

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
	condWaitScript    = newScript(queueLua, condCommonLua, condWaitLua)
	condCheckScript   = newScript(queueLua, condCommonLua, condCheckLua, acquireLua)
	condSignalScript  = newScript(queueLua, condCommonLua, condSignalLua)
	condAbandonScript = newScript(queueLua, condCommonLua, condAbandonLua)
)
