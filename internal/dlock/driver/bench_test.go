package driver_test

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// BenchmarkTurnAlone compares a turn that nobody else waits for with a lease without turns.
func BenchmarkTurnAlone(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(map[bool]string{false: "lease", true: "turn"}[shared], func(b *testing.B) {
			b.ReportAllocs()
			var t driver.Turns
			r := driver.NewRenewer(driver.RenewerConfig{TTL: time.Minute})
			grant := func() dlock.Grant {
				return dlock.Grant{Key: "a key of some length 1", Fence: dlock.Fence{Token: 1, Owner: "o"}, Sent: time.Now(), TTL: time.Minute, Renewer: r, Release: func(context.Context) error { return nil }}
			}
			ctx := b.Context()
			for b.Loop() {
				var l *dlock.Lease
				if shared {
					l, _ = t.Acquire(ctx, "a key of some length 1", func(ctx context.Context, s *driver.Share) (*dlock.Lease, driver.Wait, error) {
						return dlock.NewLease(ctx, s.Of(grant())), nil, nil
					})
				} else {
					l = dlock.NewLease(ctx, grant())
				}
				l.Release(ctx)
			}
		})
	}
}
