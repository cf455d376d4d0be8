package lab

import (
	"context"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/redisclient"
)

// pointRenewed is reported for each renewal of a textbook watchdog.
const pointRenewed = "renewed"

// watchdogWorker holds a lease of redislock. With lock=textbook in its task, it holds the textbook lock: SET with
// NX and a TTL. A goroutine sets the TTL again every third of it. The watchdog does not know whether the work
// continues, and ignores its errors.
func watchdogWorker(ctx context.Context, w *Worker) {
	if w.Task["lock"] != "textbook" {
		leaseWorker(ctx, w)
		return
	}
	ttl := w.duration("ttl")
	rdb := must(redisclient.New(w.Task["redis"]))
	defer rdb.Close()
	w.Stops(pointReady, "")
	key := "textbook:" + w.Task["key"]
	for !must(rdb.SetNX(ctx, key, w.Task["name"], ttl).Result()) {
		backoff.Jitter(ctx, ttl/20)
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
	w.Stops(pointLocked, "")
	w.Stops(pointDone, "")
}
