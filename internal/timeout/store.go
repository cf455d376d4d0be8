package timeout

import (
	"context"
	"time"
)

// Filter chooses stored timers. Zero fields choose all.
type Filter struct {
	Kind  string
	State State
	After Row       // the last row of the page before: its Next, Kind and ID; none without ID
	Until time.Time // the last Next that is chosen
	Limit int       // 0 means 100, at most 5,000

	// Brief asks for no more than Kind, ID, Lane, State and Next of a row,
	// which a store may find in an index. What the other fields are is not said.
	Brief bool
}

// Later is a timer that is to be tried again.
type Later struct {
	ID      string
	Due     time.Time // as it was handled
	At      time.Time
	Attempt int // what the row counts from now on
	Error   string
}

// Store keeps timers in a database. It is the truth: what it has not committed was
// never scheduled, and what it has is not lost with any index.
//
// A tx that is nil stands for a transaction of the method's own. An office that is not nil begins
// the transaction of what the method changes, and its error, which is in the chain of the
// method's, leaves nothing changed.
type Store interface {
	// Now returns the time by the database's clock.
	Now(ctx context.Context) (time.Time, error)

	// Insert stores timers. One that is stored already gets the new due time, and
	// is open again with no attempts, so that scheduling can be repeated.
	Insert(ctx context.Context, tx Tx, lane, trace string, timers []Timer) error

	// Delete deletes timers, open or dead, and returns how many there were. A due that is
	// not nil has a time for each of ids, which differ, and spares those that are due later than theirs.
	Delete(ctx context.Context, tx Tx, kind string, ids []string, due []time.Time) (int, error)

	// Move gives a timer another due time and no attempts, or fails with
	// ErrNotFound. A dead one is open again. It returns the row as it is then.
	Move(ctx context.Context, tx Tx, kind, id string, due time.Time) (Row, error)

	// Load returns those of the timers that are stored, open or dead, in any order,
	// and the time by the database's clock.
	Load(ctx context.Context, kind string, ids []string) ([]Row, time.Time, error)

	// Delay records failures: when to try again, and how often it was tried.
	// Bury records that there will be no further attempt. Both spare timers that
	// are due later than they were when they were handled: they have been moved meanwhile.
	Delay(ctx context.Context, kind string, later []Later) error
	Bury(ctx context.Context, kind string, later []Later) error

	// Sweep claims open timers of the kind and the lane whose Next is before a moment,
	// the earliest first: it sets their Next
	// to until and counts the attempt in the row. It returns the rows with that attempt, and
	// with the Next that they had before. Timers that another transaction is working on are passed over.
	Sweep(ctx context.Context, office Office, kind, lane string, before, until time.Time, limit int) ([]Row, error)

	// List returns timers in the order of Next, Kind and ID.
	List(ctx context.Context, f Filter) ([]Row, error)

	// Count returns how many timers there are, by kind, lane and state.
	Count(ctx context.Context) (map[Shard]map[State]int, error)

	// Redrive makes those of the timers that are dead open again, due now and with no
	// attempts, and returns them.
	Redrive(ctx context.Context, kind string, ids []string) ([]Row, error)

	// SetPaused says whether a kind is paused, Paused which kinds are.
	SetPaused(ctx context.Context, kind string, paused bool) error
	Paused(ctx context.Context) ([]string, error)

	// Beat says that instance consumes the lane. Adopt moves open timers out of
	// lanes that nobody has consumed for the given time into the lane "base", and
	// returns how many it moved. SilentLanes returns the other lanes that had consumers in
	// the last day, and none for the given time.
	Beat(ctx context.Context, lane, instance string) error
	Adopt(ctx context.Context, office Office, silent time.Duration, limit int) (int, error)
	SilentLanes(ctx context.Context, silent time.Duration) ([]string, error)
}
