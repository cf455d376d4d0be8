package redissem

import (
	"embed"

	"example.com/shop/internal/platform/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

// The scripts are constants that cannot be declared so.
var (
	acquireScript = lua.Script("common", "acquire")
	renewScript   = lua.Script("common", "renew")
	releaseScript = lua.Script("common", "release")
	abandonScript = lua.Script("common", "abandon")
	resizeScript  = lua.Script("common", "resize")
)
