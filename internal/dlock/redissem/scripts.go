package redissem

import (
	_ "embed" // the scripts are files

	"example.com/shop/internal/redisx"
)

//go:embed lua/common.lua
var commonLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/abandon.lua
var abandonLua string

//go:embed lua/resize.lua
var resizeLua string

// The scripts are constants that cannot be declared so.
var (
	acquireScript = redisx.NewScript(commonLua, acquireLua)
	renewScript   = redisx.NewScript(commonLua, renewLua)
	releaseScript = redisx.NewScript(commonLua, releaseLua)
	abandonScript = redisx.NewScript(commonLua, abandonLua)
	resizeScript  = redisx.NewScript(commonLua, resizeLua)
)
