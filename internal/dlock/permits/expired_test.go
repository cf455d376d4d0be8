package permits_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/permits"
)

// slowStore grants all permits. Its third answer comes when the lease has expired, and the next one never.
type slowStore struct {
	calls  int
	asked  chan struct{} // the fourth call
	closed chan struct{}
}

const slowTTL = 4 * time.Second

func (s *slowStore) Renew(_ context.Context, r permits.Renewal) (permits.Division, error) {
	s.calls++
	switch s.calls {
	case 3:
		time.Sleep(slowTTL * 95 / 100)
	case 4:
		close(s.asked)
		<-s.closed
		return permits.Division{}, errors.New("closed")
	}
	return permits.Division{Granted: r.Permits, Target: r.Permits, Permits: r.Permits, Held: r.Permits, Instances: 1}, nil
}

func (*slowStore) Release(context.Context, string) error { return nil }

func (*slowStore) Resize(context.Context, int) error { return nil }

// The permits of a lease that has expired are gone, and not given out until the store has answered.
func TestExpiredLeaseHasNoPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{asked: make(chan struct{}), closed: make(chan struct{})}
		l, err := permits.New(s, permits.Config{Permits: 4, TTL: slowTTL})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx) }()
		time.Sleep(slowTTL / 10) // after the first call
		if got := l.Stats().Capacity; got != 4 {
			t.Errorf("%d permits at first, want 4", got)
		}
		<-s.asked
		if got := l.Stats(); got.Capacity != 0 || got.Leased != 0 {
			t.Errorf("%d permits, and %d leased, after the lease has expired", got.Capacity, got.Leased)
		}
		stop()
		close(s.closed)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
