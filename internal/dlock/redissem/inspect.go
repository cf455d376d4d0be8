package redissem

import (
	"context"
	"fmt"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// The script is a constant that cannot be declared so.
var usageScript = lua.Script("common", "usage")

// Usage returns how many permits key has, how many of them are held, and how many leases are waited for. Dead waiters
// count until they are passed over. The numbers may be out of date when they arrive. A key that nobody uses is no
// error.
func (s *Semaphore) Usage(ctx context.Context, key string) (permits, held, waiters int, err error) {
	if err := redisx.CheckKey(key); err != nil {
		return 0, 0, 0, err
	}
	reply, _, err := s.run(ctx, usageScript, key)
	var counts []int64
	if err == nil {
		counts, err = redisx.Ints(reply, 3)
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("redissem: usage of %q: %w", key, driver.InTime(ctx, err))
	}
	return int(counts[0]), int(counts[1]), int(counts[2]), nil
}
