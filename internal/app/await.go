package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/storeurl"
)

const (
	// awaitTimeout is how long a starting instance begins attempts to reach a store. The last one takes the time
	// that it takes. A server that restarts has recovered by then, and a wrong address is reported while somebody
	// still watches.
	awaitTimeout = 10 * time.Second

	// awaitPause is the time between two attempts.
	awaitPause = 100 * time.Millisecond
)

// await calls open until it reaches its store, and logs that it waits. It returns any other error at once. The
// first error after awaitTimeout, or after the end of ctx, is the last; await does not interrupt open.
func await(ctx context.Context, log *slog.Logger, open func() error) error {
	end := time.Now().Add(awaitTimeout)
	for logged := false; ; logged = true {
		err := open()
		if err == nil || !unreachable(err) || time.Now().After(end) {
			return err
		}
		if !logged {
			log.WarnContext(ctx, "waiting for a store", slog.Duration("at_most", awaitTimeout), slog.String("error", err.Error()))
		}
		if !backoff.Sleep(ctx, awaitPause) {
			return err
		}
	}
}

// unreachable reports whether no server answers, or one that is starting. A name without an address, a refused
// password or certificate, and an unknown database are permanent errors.
func unreachable(err error) bool {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound || storeurl.Refused(err) {
		return false
	}
	return sqldb.Unreachable(err) || redis.IsLoadingError(err) || redis.IsMasterDownError(err) ||
		redis.IsClusterDownError(err) || redis.IsMaxClientsError(err)
}
