package timeout

import (
	"context"
	"errors"

	"example.com/shop/internal/dlock"
)

// ErrLed says that there is somebody who leads, so that nobody has to stand in.
var ErrLed = errors.New("timeout: somebody leads")

// Term is the time for which somebody was elected: a [dlock.Lease], or what has one.
type Term interface {
	// Fence returns the number of the term, and its owner.
	Fence() dlock.Fence

	// Err returns nil until the term is over.
	Err() error
}

// Office is the right to some work, which is checked where the work is done: it is the first
// statement of each transaction of the work, and its error undoes the transaction. Whoever has
// passed it is alone with the role until the transaction ends. Without a transaction it says
// what is so at the moment.
type Office func(ctx context.Context, tx Tx) error

// Check calls the leader role. A nil one lets everybody pass.
func (o Office) Check(ctx context.Context, tx Tx) error {
	if o == nil {
		return nil
	}
	return o(ctx, tx)
}

// Offices keeps in the database who has which role, so that the work of a leader can be refused
// that does not know yet that there is another one. It is safe for concurrent use.
type Offices interface {
	// TakeOffice gives a role to whoever has a term, who has to be told by the lock service
	// that it goes on: from then on the leader roles of all before refuse, with an error that is
	// [dlock.ErrFenced]. It may be repeated. It fails if the term is over, or
	// the database does not answer.
	TakeOffice(ctx context.Context, duty string, t Term) (Office, error)

	// VacantOffice returns the role of everybody while nobody leads: it refuses with
	// [ErrLed] if whoever has taken the role has been at work in the last seconds.
	VacantOffice(duty string) Office
}
