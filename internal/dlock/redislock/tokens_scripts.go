package redislock

import _ "embed" // the scripts are files

//go:embed tokens_common.lua
var tokensCommonLua string

//go:embed tokens_take.lua
var tokensTakeLua string

//go:embed tokens_renew.lua
var tokensRenewLua string

//go:embed tokens_release.lua
var tokensReleaseLua string

//go:embed tokens_reconcile.lua
var tokensReconcileLua string

//go:embed tokens_reap.lua
var tokensReapLua string

// The scripts are constants that cannot be declared so.
var (
	tokensTakeScript      = newScript(tokensCommonLua, tokensTakeLua)
	tokensRenewScript     = newScript(tokensCommonLua, tokensRenewLua)
	tokensReleaseScript   = newScript(tokensCommonLua, tokensReleaseLua)
	tokensReconcileScript = newScript(tokensCommonLua, tokensReconcileLua)
	tokensReapScript      = newScript(tokensCommonLua, tokensReapLua)
)
