package redislog

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed append.lua
var appendSource string

//go:embed begin.lua
var beginSource string

var (
	appendScript = redis.NewScript(appendSource)
	beginScript  = redis.NewScript(beginSource)
)
