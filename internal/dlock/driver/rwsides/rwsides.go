// Package rwsides is the part of package driver for backends with a read/write lock.
package rwsides

import (
	"context"
	"fmt"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// Sides is what an [dlock.RWLocker] is to [dlock.Reenter]: a reader and a writer that the
// same context can be. A backend has one per client and puts a side of it into
// [dlock.Grant.Backend]. It must not be copied.
type Sides struct {
	reader, writer struct{ _ byte } // each has an address of its own
}

// Side returns the writer or the reader, for [dlock.Grant.Backend].
func (s *Sides) Side(write bool) any {
	if write {
		return &s.writer
	}
	return &s.reader
}

// Enter is [driver.Enter] for a side:
//
//   - A context that holds key as the writer gets another lease of that grant, as the writer or as a reader.
//   - A context that holds key as a reader gets another share of that grant. A separate reader would wait for a
//     writer that waits for the first reader.
//   - A reader that wants to write gets [dlock.ErrReentry], because it would wait for itself.
//   - A new owner gets nil, and an error if ctx has ended or check refuses key.
func (s *Sides) Enter(ctx context.Context, key string, write bool, check func(key string) error) (*dlock.Lease, error) {
	lease, err := dlock.Reenter(ctx, &s.writer, key)
	if lease != nil || err != nil {
		return lease, err
	}
	lease, err = driver.Enter(ctx, &s.reader, check, key)
	if lease == nil || !write {
		return lease, err
	}
	// The reader's other leases keep the grant, so that the store is notified of nothing.
	_ = lease.Release(ctx)
	return nil, fmt.Errorf("%w as a reader", dlock.ErrReentry)
}
