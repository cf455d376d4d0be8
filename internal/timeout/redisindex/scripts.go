package redisindex

import _ "embed" // the scripts are files

//go:embed common.lua
var commonLua string

//go:embed schedule.lua
var scheduleLua string

//go:embed claim.lua
var claimLua string

//go:embed return.lua
var returnLua string

//go:embed extend.lua
var extendLua string

//go:embed head.lua
var headLua string

// The scripts are constants that cannot be declared so.
var (
	scheduleScript = newScript(commonLua, headLua, scheduleLua)
	claimScript    = newScript(commonLua, claimLua)
	returnScript   = newScript(commonLua, headLua, returnLua)
	extendScript   = newScript(commonLua, extendLua)
)
