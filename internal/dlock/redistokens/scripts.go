package redistokens

import (
	"embed"

	"example.com/shop/internal/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

// The scripts are constants that cannot be declared so.
var (
	takeScript      = lua.Script("common", "take")
	renewScript     = lua.Script("common", "renew")
	releaseScript   = lua.Script("common", "release")
	reconcileScript = lua.Script("common", "reconcile")
	reapScript      = lua.Script("common", "reap")
	// arrivedText is sent whole, as a server that has lost its data may have lost its scripts.
	arrivedText = lua.Text("common", "arrived")
)
