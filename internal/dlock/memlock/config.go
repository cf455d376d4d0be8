package memlock

import "time"

// Config is the configuration of a [Locker].
type Config struct {
	TTL     time.Duration // how long a grant lasts without renewal; 0 means 30 s
	MaxHold time.Duration // how long a grant lasts with renewals; 0 means no limit
}
