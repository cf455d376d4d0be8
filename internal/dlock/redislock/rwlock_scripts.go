package redislock

import _ "embed" // the scripts are files

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

//go:embed rwlock_inspect.lua
var rwInspectLua string

//go:embed rwlock_force.lua
var rwForceLua string

// The scripts are constants that cannot be declared so.
var (
	rwAcquireScript = newScript(rwCommonLua, rwAcquireLua)
	rwRenewScript   = newScript(rwCommonLua, rwRenewLua)
	rwReleaseScript = newScript(rwCommonLua, rwReleaseLua)
	rwAdmitScript   = newScript(rwCommonLua, rwAdmitLua)
	rwAbandonScript = newScript(rwCommonLua, rwAbandonLua)
	rwInspectScript = newScript(rwCommonLua, rwInspectLua)
	rwForceScript   = newScript(rwCommonLua, rwForceLua)
)
