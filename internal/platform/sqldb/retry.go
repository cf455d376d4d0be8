package sqldb

import (
	"context"
	"errors"
	"net"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/backoff"
)

// MaxRetries is how often [Retry] repeats a failed call.
const MaxRetries = 5

// Retry calls f until f succeeds, until again rejects the error of f, until ctx ends, or 1 + [MaxRetries] times. It
// returns the last error of f. The first pause takes up to the given time, and each further pause twice as long. If
// f writes, it must be safe to repeat: a transaction that was rolled back, or a single statement.
func Retry(ctx context.Context, pause time.Duration, again func(error) bool, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil || try == MaxRetries || !again(err) || !backoff.Jitter(ctx, pause<<try) {
			return err
		}
	}
}

// Await waits until the database answers f. A new SQLite file is busy while another process switches it to WAL mode,
// for which the busy timeout does not wait. A server that answers too late, as on a machine that is paused for some
// seconds, gets the request again. A server that refuses does not.
func Await(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		e, network := errors.AsType[net.Error](err)
		late := network && e.Timeout() || errors.Is(err, mysqldriver.ErrInvalidConn)
		if !Transient(err) && (!late || try == MaxRetries) || !backoff.Jitter(ctx, 10*time.Millisecond) {
			return err
		}
	}
}
