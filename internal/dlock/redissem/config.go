package redissem

import "time"

// Config is the configuration of a [Semaphore].
type Config struct {
	// Permits is how many permits each key has, until it is resized. 0 means 1.
	// Clients of one store should agree on it: each grants by its own number.
	Permits int

	// TTL is how long Redis keeps a grant that is not renewed, and so how long a dead holder keeps its permits. 0
	// means 30 s.
	TTL time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not.
	// 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one round trip. 0 means 2 s; it is never more than TTL/4.
	Timeout time.Duration

	// Prefix begins every key in Redis. Empty means "shop:sem:".
	Prefix string
}
