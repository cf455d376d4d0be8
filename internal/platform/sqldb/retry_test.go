package sqldb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/platform/sqldb"
)

var errPassing, errFinal = errors.New("passing"), errors.New("final")

func passing(err error) bool { return errors.Is(err, errPassing) }

func TestRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures []error // of the first calls; later calls succeed
		calls    int
		want     error
	}{
		"success":            {nil, 1, nil},
		"a passing failure":  {[]error{errPassing}, 2, nil},
		"a final failure":    {[]error{errPassing, errFinal}, 2, errFinal},
		"too many failures":  {[]error{errPassing, errPassing, errPassing, errPassing, errPassing, errPassing, errFinal}, 6, errPassing},
		"the last attempt":   {[]error{errPassing, errPassing, errPassing, errPassing, errPassing}, 6, nil},
		"a failure at first": {[]error{errFinal}, 1, errFinal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, began := 0, time.Now()
				err := sqldb.Retry(t.Context(), time.Second, passing, func() error {
					if calls++; calls <= len(c.failures) {
						return c.failures[calls-1]
					}
					return nil
				})
				if calls != c.calls || !errors.Is(err, c.want) {
					t.Errorf("%d calls and %v, want %d and %v", calls, err, c.calls, c.want)
				}
				longest := time.Duration(1<<(calls-1)-1) * time.Second
				if took := time.Since(began); took < longest/2 || took > longest {
					t.Errorf("took %v, want %v to %v", took, longest/2, longest)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		calls := 0
		err := sqldb.Retry(ctx, time.Second, passing, func() error { calls++; return errPassing })
		if calls != 1 || !errors.Is(err, errPassing) {
			t.Errorf("%d calls and %v", calls, err)
		}
	})
}
