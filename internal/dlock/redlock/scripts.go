package redlock

import (
	"embed"

	"example.com/shop/internal/platform/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

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
