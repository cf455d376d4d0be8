package dlock

import (
	"cmp"
	"context"
	"errors"
)

// alone returns a Renewer for one grant that has Extend.
func alone(g *Grant) *Renewer {
	return NewRenewer(RenewerConfig{TTL: g.TTL, Renew: func(ctx context.Context, held []Held) []error {
		errs := make([]error, len(held))
		errs[0] = g.Extend(ctx)
		for i := range errs {
			errs[i] = errs[0]
		}
		return errs
	}})
}

// worst returns the verdict on a grant of several keys: one that is lost loses all.
func worst(errs []error, from, to int) error {
	var failed error
	for i := from; i < to; i++ {
		if i >= len(errs) {
			return cmp.Or(failed, errNoVerdict)
		}
		if errors.Is(errs[i], ErrLost) {
			return errs[i]
		}
		failed = cmp.Or(failed, errs[i])
	}
	return failed
}

var errNoVerdict = errors.New("dlock: the backend returned too few verdicts")
