package redislock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed acquire.lua
var acquireLua string

//go:embed renew.lua
var renewLua string

//go:embed release.lua
var releaseLua string

//go:embed abandon.lua
var abandonLua string

// The scripts are constants that cannot be declared so.
var (
	acquireScript = redis.NewScript(acquireLua)
	renewScript   = redis.NewScript(renewLua)
	releaseScript = redis.NewScript(releaseLua)
	abandonScript = redis.NewScript(abandonLua)
)

// Verdicts of renew.lua and release.lua.
const (
	verdictGone  = 0
	verdictTaken = -1
)
