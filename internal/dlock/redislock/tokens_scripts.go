package redislock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

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
	tokensTakeScript      = redis.NewScript(tokensCommonLua + tokensTakeLua)
	tokensRenewScript     = redis.NewScript(tokensCommonLua + tokensRenewLua)
	tokensReleaseScript   = redis.NewScript(tokensCommonLua + tokensReleaseLua)
	tokensReconcileScript = redis.NewScript(tokensCommonLua + tokensReconcileLua)
	tokensReapScript      = redis.NewScript(tokensCommonLua + tokensReapLua)
)
