package lab

import (
	"context"
	"errors"
	"strings"

	"example.com/shop/internal/dlock"
)

// The points of a basket worker, in addition to those of an order worker.
const (
	pointFirst = "first" // it has the lock of the first SKU of its basket
	pointAll   = "all"   // it has the locks of all; the value says whether the first one was valid until now
	pointFails = "fails" // its deadline is over, and it still has the first lock; the value is as for all
)

// basketWorker locks the SKUs of its basket: sorted, as the shop does, or each in the order of the basket, if its task has sorted=no.
func basketWorker(ctx context.Context, w *Worker) {
	locker := w.locker()
	w.Stops(pointReady, "")
	keys := strings.Fields(w.Task["basket"])
	var leases []*dlock.Lease
	if w.Task["sorted"] == "no" {
		leases = inBasketOrder(ctx, w, locker, keys)
	} else {
		var lease *dlock.Lease
		var err error
		for lease == nil && ctx.Err() == nil { // as persist
			lease, err = locker.AcquireAll(ctx, keys)
		}
		check(err)
		leases = append(leases, lease)
	}
	if len(leases) == 0 {
		return
	}
	w.Stops(pointAll, "%s", validity(leases[0]))
	var err error
	for _, lease := range leases {
		err = errors.Join(err, lease.Release(ctx))
	}
	w.Says(pointReleased, "%v", err)
}

// inBasketOrder is the wrong way to lock a basket: one key after the other, in the order in which its customer chose.
// It returns no leases if the deadline of the request is over before it has the second key.
func inBasketOrder(ctx context.Context, w *Worker, l dlock.Locker, keys []string) []*dlock.Lease {
	patience := w.duration("deadline")
	first := must(persist(ctx, l, keys[0]))
	w.Stops(pointFirst, "")
	request, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	second, err := persist(request, l, keys[1])
	if err == nil {
		return []*dlock.Lease{first, second}
	}
	if request.Err() == nil || ctx.Err() != nil {
		check(err)
	}
	w.Says(pointFails, "%s", validity(first))
	check(first.Release(ctx))
	return nil
}

// validity says whether a lease was valid until now.
func validity(lease *dlock.Lease) string {
	if err := lease.Err(); err != nil {
		return err.Error()
	}
	return leaseValid
}
