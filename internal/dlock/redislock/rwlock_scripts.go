package redislock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed rwlock_common.lua
var rwCommonLua string

//go:embed rwlock_acquire.lua
var rwAcquireLua string

//go:embed rwlock_renew.lua
var rwRenewLua string

//go:embed rwlock_release.lua
var rwReleaseLua string

//go:embed rwlock_admit.lua
var rwAdmitLua string

//go:embed rwlock_abandon.lua
var rwAbandonLua string

// The scripts are constants that cannot be declared so.
var (
	rwAcquireScript = redis.NewScript(rwCommonLua + rwAcquireLua)
	rwRenewScript   = redis.NewScript(rwCommonLua + rwRenewLua)
	rwReleaseScript = redis.NewScript(rwCommonLua + rwReleaseLua)
	rwAdmitScript   = redis.NewScript(rwCommonLua + rwAdmitLua)
	rwAbandonScript = redis.NewScript(rwCommonLua + rwAbandonLua)
)
