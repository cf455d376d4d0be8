package redislock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed semaphore_common.lua
var semaphoreCommonLua string

//go:embed semaphore_acquire.lua
var semaphoreAcquireLua string

//go:embed semaphore_renew.lua
var semaphoreRenewLua string

//go:embed semaphore_release.lua
var semaphoreReleaseLua string

//go:embed semaphore_abandon.lua
var semaphoreAbandonLua string

//go:embed semaphore_resize.lua
var semaphoreResizeLua string

// The scripts are constants that cannot be declared so.
var (
	semaphoreAcquireScript = redis.NewScript(semaphoreCommonLua + semaphoreAcquireLua)
	semaphoreRenewScript   = redis.NewScript(semaphoreCommonLua + semaphoreRenewLua)
	semaphoreReleaseScript = redis.NewScript(semaphoreCommonLua + semaphoreReleaseLua)
	semaphoreAbandonScript = redis.NewScript(semaphoreCommonLua + semaphoreAbandonLua)
	semaphoreResizeScript  = redis.NewScript(semaphoreCommonLua + semaphoreResizeLua)
)
