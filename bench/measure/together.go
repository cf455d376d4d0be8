package measure

import (
	"errors"
	"sync"
)

// Together runs f n times at once, with numbers from 0 on.
func Together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
