package redisindex

import (
	_ "embed" // the scripts are files

	"example.com/shop/internal/redisx"
)

//go:embed common.lua
var commonLua string

//go:embed schedule.lua
var scheduleLua string

//go:embed claim.lua
var claimLua string

// The scripts are constants that cannot be declared so.
var (
	scheduleScript = redisx.NewScript(commonLua, scheduleLua)
	claimScript    = redisx.NewScript(commonLua, claimLua)
)
