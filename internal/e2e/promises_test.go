package main

import (
	"time"
)

// What docs/operations.md promises of an instance.
const (
	leaseTTL       = 2 * time.Second
	sessionTimeout = 8 * time.Second
	permitsTTL     = 3 * time.Second
	drainWait      = 2 * time.Second
	stopTimeout    = 12 * time.Second
)
