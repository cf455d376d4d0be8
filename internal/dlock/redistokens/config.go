package redistokens

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// Config is the configuration of [Tokens].
type Config struct {
	// Permits is how many tokens a key has. The client that uses a key first makes
	// them; what others are configured with does not matter then. 0 means 1.
	Permits int

	// TTL is how long Redis keeps the tokens of a client that does not renew, and so how long a dead client keeps
	// them. 0 means 30 s.
	TTL time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not.
	// 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one round trip, apart from what a waiting one waits. 0 means
	// 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Name says which process this is, so that ReleaseAll can release what it held
	// before it was restarted. No two living processes may have the same name.
	// Empty means a random one.
	Name string

	// Prefix begins every key in Redis. Empty means "shop:sem:".
	Prefix string

	// Blocking is a client for commands that wait on the server, a connection for
	// each key that is waited for. Nil means one with the options of the other
	// client and a pool of its own, which Close closes.
	Blocking redis.UniversalClient
}
