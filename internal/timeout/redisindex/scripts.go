package redisindex

import (
	"embed"

	"example.com/shop/internal/platform/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

// The scripts are constants that cannot be declared so.
var (
	scheduleScript = lua.Script("common", "schedule")
	claimScript    = lua.Script("common", "claim")
)
