package redisindex

import _ "embed" // the scripts are files

//go:embed common.lua
var commonLua string

//go:embed schedule.lua
var scheduleLua string

//go:embed claim.lua
var claimLua string

// The scripts are constants that cannot be declared so.
var (
	scheduleScript = newScript(commonLua, scheduleLua)
	claimScript    = newScript(commonLua, claimLua)
)
