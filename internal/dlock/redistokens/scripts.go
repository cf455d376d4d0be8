package redistokens

import (
	_ "embed" // the scripts are files

	"example.com/shop/internal/redisx"
)

//go:embed lua/common.lua
var commonLua string

//go:embed lua/take.lua
var takeLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/reconcile.lua
var reconcileLua string

//go:embed lua/reap.lua
var reapLua string

// The scripts are constants that cannot be declared so.
var (
	takeScript      = redisx.NewScript(commonLua, takeLua)
	renewScript     = redisx.NewScript(commonLua, renewLua)
	releaseScript   = redisx.NewScript(commonLua, releaseLua)
	reconcileScript = redisx.NewScript(commonLua, reconcileLua)
	reapScript      = redisx.NewScript(commonLua, reapLua)
)
