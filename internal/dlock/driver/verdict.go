package driver

import (
	"fmt"

	"example.com/shop/internal/dlock"
)

// The replies of a script about one grant that it was to renew or to release.
const (
	Done   = 1
	Gone   = 0
	Taken  = -1
	Forced = -2
)

// Verdict makes an answer of a script about h an error.
func Verdict(h dlock.Held, answer any) error {
	lost := &dlock.LostError{Key: h.Key, Fence: h.Fence}
	switch answer {
	case int64(Done):
		return nil
	case int64(Gone):
		lost.Reason = dlock.Expired
	case int64(Taken):
		lost.Reason = dlock.Taken
	case int64(Forced):
		lost.Reason = dlock.Forced
	default:
		return fmt.Errorf("driver: %q: answer %v", h.Key, answer)
	}
	return lost
}
