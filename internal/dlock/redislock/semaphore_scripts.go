package redislock

import _ "embed" // the scripts are files

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
	semaphoreAcquireScript = newScript(semaphoreCommonLua, semaphoreAcquireLua)
	semaphoreRenewScript   = newScript(semaphoreCommonLua, semaphoreRenewLua)
	semaphoreReleaseScript = newScript(semaphoreCommonLua, semaphoreReleaseLua)
	semaphoreAbandonScript = newScript(semaphoreCommonLua, semaphoreAbandonLua)
	semaphoreResizeScript  = newScript(semaphoreCommonLua, semaphoreResizeLua)
)
