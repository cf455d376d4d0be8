package stock

import "context"

// Counter counts the units of SKUs that may still be taken, in a place that is faster than the database and that all
// instances share. Its grants are advice: the transaction decides, and a read of the level decides before an order is
// refused. If a counter grants too much, a transaction sells nothing. If it grants too little, the cost is a read.
type Counter interface {
	// Take takes units of sku for orders that want as many as wanted says, in their order, each
	// all or none. The units are away for others until [Counter.Finish], or for as long as the
	// counter lets a hold last. Of a SKU that it does not know nothing is taken, until a
	// level is settled with that hold.
	//
	// After an error, nothing is known about the units. Units that may have been taken are released as soon as the
	// counter answers, or after that time.
	Take(ctx context.Context, sku string, wanted []int64) (Hold, error)

	// Finish ends h: its transaction is over, whatever became of it. level is what the database was seen to hold after
	// t was taken, or nil. It does not block: the next Take of the SKU, or Flush, notifies the counter.
	Finish(h Hold, level *Level)

	// Flush notifies the counter of finished holds of sku. If that fails, the end of the holds and later levels
	// correct the counter.
	Flush(ctx context.Context, sku string)
}

// Hold is units that are taken.
type Hold struct {
	SKU     string
	ID      string
	Seen    int64  // the version of the level that it was taken from; -1: of none
	Granted []bool // of each order; nil: the counter does not know the SKU
}

// Denies reports whether the counter has no units for the order with the index i.
func (t Hold) Denies(i int) bool { return t.Granted != nil && !t.Granted[i] }

// counted is not a lock. Its release notifies c of the outcome of the holds.
func counted(c Counter) Lock {
	if c == nil {
		return nil
	}
	return func(ctx context.Context, sku string) (Held, error) {
		return Held{Context: ctx, Release: func() { c.Flush(ctx, sku) }}, nil
	}
}
