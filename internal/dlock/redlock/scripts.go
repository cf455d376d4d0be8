package redlock

import (
	"embed"
	"fmt"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

//go:embed lua
var files embed.FS

// lua has the scripts. The line before them says how many fencing tokens a grant has.
var lua = redisx.Folder{Files: files, First: fmt.Sprintf("local block = %d\n", driver.TurnsPerGrant)}

// The scripts are constants that cannot be declared so.
var (
	takeScript         = lua.Script("take")
	raiseScript        = lua.Script("raise")
	renewScript        = lua.Script("each", "renew")
	releaseScript      = lua.Script("each", "release")
	forceScript        = lua.Script("force")
	inspectScript      = lua.Script("inspect")
	raiseCounterScript = lua.Script("raise_counter")
)
