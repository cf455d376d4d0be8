package cluster_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
)

// alone is an election with one candidate, which loses the present term on demand.
type alone struct {
	terms  uint64
	lose   context.CancelCauseFunc
	resign error
}

// Campaign implements [cluster.Election].
func (a *alone) Campaign(ctx context.Context) (*cluster.Term, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	a.terms++
	held, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	a.lose = lose
	l := cluster.Leader{Name: "a", Fence: dlock.Fence{Token: a.terms, Owner: "x"}}
	return cluster.NewTerm(held, l, func(context.Context) error { return a.resign }), nil
}

// Observe implements [cluster.Election].
func (a *alone) Observe(context.Context) iter.Seq2[cluster.Leader, error] { return nil }

// TestLeadPauses after work that ends by itself, also if nobody else wants to lead.
func TestLeadPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
		defer cancel()
		turns := 0
		cluster.Lead{Election: &alone{}}.Run(ctx, func(context.Context, *cluster.Term) error {
			turns++
			return nil
		})
		if turns != 61 {
			t.Errorf("%d turns in a minute", turns)
		}
	})
}

// TestLeadReports failed work and a failed resignation, and neither a loss nor what follows from it.
func TestLeadReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var reported []error
		a, broken := &alone{}, errors.New("broken")
		cluster.Lead{Election: a, OnError: func(err error) { reported = append(reported, err) }}.Run(ctx, func(work context.Context, term *cluster.Term) error {
			switch term.Fence().Token {
			case 1:
				return broken
			case 2:
				a.resign = errAway
				return nil
			case 3:
				a.resign = nil
				a.lose(&dlock.LostError{Reason: dlock.Taken})
				<-work.Done()
				if !errors.Is(context.Cause(work), dlock.ErrLost) || !errors.Is(term.Err(), dlock.ErrLost) {
					t.Errorf("the work ends by %v, the term by %v", context.Cause(work), term.Err())
				}
				return errors.New("what follows")
			}
			cancel()
			return nil
		})
		if len(reported) != 2 || !errors.Is(reported[0], broken) || !errors.Is(reported[1], errAway) {
			t.Errorf("reported %v", reported)
		}
	})
}

// TestLeadResignsAfterAPanic so that others can lead.
func TestLeadResignsAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var held *cluster.Term
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			cluster.Lead{Election: &alone{}}.Run(t.Context(), func(_ context.Context, term *cluster.Term) error {
				held = term
				panic("work")
			})
		}()
		if !errors.Is(held.Err(), dlock.ErrReleased) {
			t.Errorf("the term ends by %v", held.Err())
		}
	})
}
