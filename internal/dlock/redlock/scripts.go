package redlock

import (
	"embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

//go:embed lua
var files embed.FS

// lua has the scripts. The line before them says how many fencing tokens a grant has.
var lua = redisx.Folder{Files: files, First: fmt.Sprintf("local block = %d\n", driver.TurnsPerGrant)}

// The scripts are constants that cannot be declared so.
var (
	takeScript         = redis.NewScript(lua.Text("take"))
	raiseScript        = redis.NewScript(lua.Text("raise"))
	renewScript        = redis.NewScript(lua.Text("each", "renew"))
	releaseScript      = redis.NewScript(lua.Text("each", "release"))
	forceScript        = redis.NewScript(lua.Text("force"))
	inspectScript      = redis.NewScript(lua.Text("inspect"))
	raiseCounterScript = redis.NewScript(lua.Text("raise_counter"))
)

// Verdicts of renew.lua and release.lua.
const (
	verdictHeld   = 1
	verdictGone   = 0
	verdictTaken  = -1
	verdictForced = -2
)
