package redisrw

import (
	"embed"

	"example.com/shop/internal/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

// The scripts are constants that cannot be declared so.
var (
	acquireScript = lua.Script("common", "acquire")
	renewScript   = lua.Script("common", "renew")
	releaseScript = lua.Script("common", "release")
	admitScript   = lua.Script("common", "admit")
	abandonScript = lua.Script("common", "abandon")
	inspectScript = lua.Script("common", "inspect")
	forceScript   = lua.Script("common", "force")
)
