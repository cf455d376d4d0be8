package sqllock

import "example.com/shop/internal/platform/backoff"

// SetPauses sets the pauses between two polls of a waiter.
func (l *Locker) SetPauses(p backoff.Decorrelated) { l.pauses = p }
