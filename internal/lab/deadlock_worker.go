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
	pointAll   = "all"   // it has the locks of all
	pointFails = "fails" // its deadline is over; the value is the error
)

// basketWorker locks the SKUs of its basket: sorted, as the product does, or each in the order of the basket, if its task has sorted=no.
func basketWorker(ctx context.Context, w *Worker) error {
	locker, err := w.locker()
	if err != nil {
		return err
	}
	if err := w.Stops(pointReady, ""); err != nil {
		return err
	}
	patience, err := w.duration("deadline")
	if err != nil {
		return err
	}
	request, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	keys := strings.Fields(w.Task["basket"])
	var leases []*dlock.Lease
	if w.Task["sorted"] == "no" {
		leases, err = inBasketOrder(request, w, locker, keys)
	} else {
		var lease *dlock.Lease
		for lease == nil && request.Err() == nil { // as persist
			lease, err = locker.AcquireAll(request, keys)
		}
		leases = append(leases, lease)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		w.Says(pointFails, "the deadline of the request is over")
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.Stops(pointAll, ""); err != nil {
		return err
	}
	for _, lease := range leases {
		err = errors.Join(err, lease.Release(ctx))
	}
	w.Says(pointReleased, "%v", err)
	return nil
}

// inBasketOrder is the wrong way to lock a basket: one key after the other, in the order in which its customer chose.
func inBasketOrder(ctx context.Context, w *Worker, l dlock.Locker, keys []string) ([]*dlock.Lease, error) {
	var leases []*dlock.Lease
	for i, key := range keys {
		lease, err := persist(ctx, l, key)
		if err != nil {
			for _, held := range leases {
				err = errors.Join(err, held.Release(ctx))
			}
			return nil, err
		}
		leases = append(leases, lease)
		if i == 0 {
			if err := w.Stops(pointFirst, ""); err != nil {
				return nil, err
			}
		}
	}
	return leases, nil
}
