package redlock

import (
	_ "embed" // the scripts are files
	"fmt"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/driver"
)

//go:embed lua/take.lua
var takeLua string

//go:embed lua/raise.lua
var raiseLua string

//go:embed lua/each.lua
var eachLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/force.lua
var forceLua string

//go:embed lua/inspect.lua
var inspectLua string

//go:embed lua/raise_counter.lua
var raiseCounterLua string

// blockLua precedes the scripts that make tokens: how many of them a grant has.
var blockLua = fmt.Sprintf("local block = %d\n", driver.TurnsPerGrant)

// The scripts are constants that cannot be declared so.
var (
	takeScript         = redis.NewScript(blockLua + takeLua)
	raiseScript        = redis.NewScript(raiseLua)
	renewScript        = redis.NewScript(eachLua + renewLua)
	releaseScript      = redis.NewScript(eachLua + releaseLua)
	forceScript        = redis.NewScript(blockLua + forceLua)
	inspectScript      = redis.NewScript(inspectLua)
	raiseCounterScript = redis.NewScript(raiseCounterLua)
)

// Verdicts of renew.lua and release.lua.
const (
	verdictHeld   = 1
	verdictGone   = 0
	verdictTaken  = -1
	verdictForced = -2
)
