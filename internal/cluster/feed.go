package cluster

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// Feed makes the sequences of this package out of readings of a store. It is for
// backends, and costs no goroutine: who ranges over a sequence reads and waits.
type Feed[T any] struct {
	// Read returns the value. If the store sends notifications, it calls changed when there
	// may be another value than the one returned. An extra call costs a reading. stop,
	// which may be nil, ends that. It returns an error soon after ctx has ended.
	Read func(ctx context.Context, changed func()) (value T, stop func(), err error)

	// Listen has changed called when a reading may succeed, or fail, where the one
	// before did not: when a connection comes or goes. It may be nil.
	Listen func(changed func()) (stop func())

	// Equal reports whether two values say the same.
	Equal func(a, b T) bool

	// Gap is the least time between the beginnings of two readings. It bounds the cost of a storm of changes, and
	// delays a change by that much. 0 means 100 ms.
	Gap time.Duration

	// FallbackPoll is the longest time between two readings. It bounds how late a change is seen if the store loses a
	// notification. 0 means 1 s.
	FallbackPoll time.Duration

	// Timeout bounds a reading. 0 means 1 s.
	Timeout time.Duration
}

// Values returns the sequence. See [Membership] for its rules.
func (f Feed[T]) Values(ctx context.Context) iter.Seq2[T, error] {
	f.Gap, f.FallbackPoll, f.Timeout = cmp.Or(f.Gap, 100*time.Millisecond), cmp.Or(f.FallbackPoll, time.Second), cmp.Or(f.Timeout, time.Second)
	return func(yield func(T, error) bool) {
		wake := make(chan struct{}, 1)
		changed := func() {
			select {
			case wake <- struct{}{}:
			default: // it has been woken already
			}
		}
		if f.Listen != nil {
			defer f.Listen(changed)()
		}
		var (
			last  T
			known bool // whether last is a value
			stale bool // whether the consumer has received ErrStale
		)
		for failures := 0; ctx.Err() == nil; {
			start := time.Now()
			value, stop, err := f.read(ctx, changed)
			fresh, news := err == nil, false
			switch {
			case ctx.Err() != nil:
			case fresh:
				failures = 0
				news = !known || stale || !f.Equal(value, last)
				last, known, stale = value, true, false
			default:
				failures++
				news, stale = !stale, true
				err = fmt.Errorf("%w: %w", ErrStale, err)
			}
			goOn := !news || yield(last, err)
			if goOn {
				f.wait(ctx, start, wake, failures)
			}
			if stop != nil {
				stop()
			}
			if !goOn {
				return
			}
		}
	}
}

func (f Feed[T]) read(ctx context.Context, changed func()) (T, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	return f.Read(ctx, changed)
}

// wait returns when it is time to read again. Then there may be a change and the gap is over, a fallback poll is due,
// or the growing pause after a failure is over.
func (f Feed[T]) wait(ctx context.Context, start time.Time, wake <-chan struct{}, failures int) {
	longest := f.FallbackPoll*8/10 + rand.N(f.FallbackPoll*2/10+1)
	if failures > 0 {
		longest = min(longest, f.Gap<<min(failures-1, 10))
	}
	select {
	case <-wake:
	case <-time.After(longest):
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(f.Gap - time.Since(start)):
	case <-ctx.Done():
	}
	select {
	case <-wake: // what came during the gap is read now
	default:
	}
}
