package lab

import (
	"context"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/redisx"
)

// pointRenewed is reported for each renewal of a textbook watchdog.
const pointRenewed = "renewed"

// watchdogWorker holds a lease of the product. With lock=textbook in its task, it holds the textbook lock: SET with
// NX and a TTL. A goroutine sets the TTL again every third of it. The watchdog does not know whether the work
// continues, and ignores its errors.
func watchdogWorker(ctx context.Context, w *Worker) error {
	if w.Task["lock"] != "textbook" {
		return leaseWorker(ctx, w)
	}
	ttl, err := w.duration("ttl")
	if err != nil {
		return err
	}
	rdb, err := redisx.New(w.Task["redis"])
	if err != nil {
		return err
	}
	defer rdb.Close()
	if err := w.Stops(pointReady, ""); err != nil {
		return err
	}
	key := "textbook:" + w.Task["key"]
	for {
		taken, err := rdb.SetNX(ctx, key, w.Task["name"], ttl).Result()
		if err != nil {
			return err
		}
		if taken {
			break
		}
		if !backoff.Jitter(ctx, ttl/20) {
			return ctx.Err()
		}
	}
	go func() { // the watchdog ends with the process, whatever becomes of the work
		for tick := time.NewTicker(ttl / 3); ; <-tick.C {
			call, cancel := context.WithTimeout(ctx, ttl/3)
			if rdb.PExpire(call, key, ttl).Err() == nil {
				w.Says(pointRenewed, "")
			}
			cancel()
		}
	}()
	if err := w.Stops(pointLocked, ""); err != nil {
		return err
	}
	return w.Stops(pointDone, "")
}
