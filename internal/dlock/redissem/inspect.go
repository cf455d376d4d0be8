package redissem

import (
	"context"
	"fmt"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
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
	if err != nil {
		return 0, 0, 0, fmt.Errorf("redissem: usage of %q: %w", key, driver.InTime(ctx, err))
	}
	counts, _ := reply.([]any)
	if len(counts) != 3 {
		return 0, 0, 0, fmt.Errorf("redissem: usage of %q: reply %v", key, reply)
	}
	number := func(i int) int { n, _ := counts[i].(int64); return int(n) }
	return number(0), number(1), number(2), nil
}
