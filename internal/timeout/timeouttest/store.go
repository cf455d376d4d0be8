package timeouttest

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"example.com/shop/internal/timeout"
)

// StoreHarness describes one [timeout.Store].
type StoreHarness struct {
	// New returns a store without timers that is for one case alone.
	New func(t *testing.T) StoreClient

	// RowLocks says that a transaction locks the rows that it has changed, and no others. So the overdue scan has rows
	// to skip.
	RowLocks bool

	// Many is how many timers the cases have that need many; 0 means 10,000.
	Many int
}

// StoreClient is a store, and what begins transactions on its database.
type StoreClient struct {
	timeout.Store
	Begin func(ctx context.Context) (Transaction, error)

	many int
}

// Transaction is a *sql.Tx, for instance.
type Transaction interface {
	timeout.Tx
	Commit() error
	Rollback() error
}

type storeCase struct {
	name string
	fn   func(ctx context.Context, t *testing.T, c StoreClient)
}

func storeCases() []storeCase {
	return []storeCase{
		{"NowIsWholeMilliseconds", nowIsWhole},
		{"InsertedIsLoaded", insertedIsLoaded},
		{"InsertRoundsUp", insertRoundsUp},
		{"InsertAgainReopens", insertAgainReopens},
		{"InsertMany", insertMany},
		{"InsertTwiceInOneCall", insertTwice},
		{"InsertOfNothing", insertNothing},
		{"OddTraceFailsNothing", oddTrace},
		{"RollbackLeavesNothing", rollbackLeavesNothing},
		{"KindsAndCaseAreDistinct", kindsAreDistinct},
		{"DeleteCounts", deleteCounts},
		{"DeleteSparesLaterDue", deleteSpares},
		{"MoveGivesAnotherDue", moveGives},
		{"MoveToTheSameMoment", moveSame},
		{"MoveOfNothingIsNotFound", moveNothing},
		{"OverlappingWritersAllSucceed", overlappingWriters},
		{"DelayRecordsFailures", delayRecords},
		{"MarkDeadEndsAttempts", markDeadEnds},
		{"FailuresSpareMovedTimers", failuresSpareMoved},
		{"FailuresSpareTimersDueAgain", failuresSpareDueAgain},
		{"FailuresSpareDeadTimers", failuresSpareDead},
		{"LongErrorIsCut", longError},
		{"RedriveByID", redriveByID},
		{"RedriveMany", redriveMany},
		{"ClaimOverdueEarliestFirst", claimOverdueEarliest},
		{"ClaimOverdueKeepsToItsArguments", claimOverdueKeeps},
		{"OverdueScansClaimEachOnce", overdueScansClaimOnce},
		{"ListEachOnceInOrder", listEachOnce},
		{"ListManyOfOneMoment", listOneMoment},
		{"ListFilters", listFilters},
		{"ListIsBounded", listIsBounded},
		{"CountByKindPartitionAndState", countAll},
		{"PauseIsKept", pauseIsKept},
		{"ReassignOrphanedPartitions", reassignOrphaned},
		{"ReassignAtMostLimit", reassignLimit},
		{"ReassignSparesDeadTimers", reassignSparesDead},
		{"EndedContextFails", endedContext},
	}
}

// RunStore checks every promise of [timeout.Store].
func RunStore(t *testing.T, h StoreHarness) {
	t.Helper()
	cases := storeCases()
	if h.RowLocks {
		cases = append(cases, storeCase{"ClaimOverdueSkipsLockedRows", claimOverdueSkips})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			client := h.New(t)
			client.many = cmp.Or(h.Many, 10_000)
			c.fn(ctx, t, client)
		})
	}
}

const kind = "order.expire"

// now returns the time by the database's clock.
func (c StoreClient) now(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	now, err := c.Now(ctx)
	if err != nil {
		t.Fatalf("now: %v", err)
	}
	return now
}

// past waits until the database's clock is later than a moment, and returns the time.
func (c StoreClient) past(ctx context.Context, t *testing.T, moment time.Time) time.Time {
	t.Helper()
	for {
		if now := c.now(ctx, t); now.After(moment) {
			return now
		}
	}
}

// insert stores timers of the kind in the partition "base".
func (c StoreClient) insert(ctx context.Context, t *testing.T, due time.Time, ids ...string) {
	t.Helper()
	timers := make([]timeout.Timer, len(ids))
	for i, id := range ids {
		timers[i] = timeout.Timer{Kind: kind, ID: id, Due: due}
	}
	c.insertIn(ctx, t, timeout.Base, timers...)
}

func (c StoreClient) insertIn(ctx context.Context, t *testing.T, partition string, timers ...timeout.Timer) {
	t.Helper()
	if err := c.Insert(ctx, nil, partition, "", timers); err != nil {
		t.Fatalf("insert: %v", err)
	}
}

// load returns timers of the kind by their identities.
func (c StoreClient) load(ctx context.Context, t *testing.T, ids ...string) map[string]timeout.Row {
	t.Helper()
	rows, _, err := c.Load(ctx, kind, ids)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	byID := make(map[string]timeout.Row, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	if len(byID) != len(rows) {
		t.Fatalf("load returned a row twice: %v", rows)
	}
	return byID
}

// one returns a timer that has to be there.
func (c StoreClient) one(ctx context.Context, t *testing.T, id string) timeout.Row {
	t.Helper()
	r, ok := c.load(ctx, t, id)[id]
	if !ok {
		t.Fatalf("timer %s is missing", id)
	}
	return r
}

// markDead makes timers dead that are due by now.
func (c StoreClient) markDead(ctx context.Context, t *testing.T, ids ...string) {
	t.Helper()
	due := c.now(ctx, t)
	later := make([]timeout.Later, len(ids))
	for i, id := range ids {
		later[i] = timeout.Later{ID: id, Due: due, Attempt: 10, Error: "hopeless"}
	}
	if err := c.MarkDead(ctx, kind, later); err != nil {
		t.Fatalf("mark dead: %v", err)
	}
}

// claimOverdue claims timers of the kind in the partition "base".
func (c StoreClient) claimOverdue(ctx context.Context, t *testing.T, before, until time.Time, limit int) []timeout.Row {
	t.Helper()
	rows, err := c.ClaimOverdue(ctx, kind, timeout.Base, before, until, limit)
	if err != nil {
		t.Fatalf("overdue scan: %v", err)
	}
	return rows
}

// delay records a failure of a timer.
func (c StoreClient) delay(ctx context.Context, t *testing.T, later ...timeout.Later) {
	t.Helper()
	if err := c.Delay(ctx, kind, later); err != nil {
		t.Fatalf("delay: %v", err)
	}
}

// list returns the first page of what f chooses.
func (c StoreClient) list(ctx context.Context, t *testing.T, f timeout.Filter) []timeout.Row {
	t.Helper()
	rows, err := c.List(ctx, f)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return rows
}

// counts checks how many timers there are.
func (c StoreClient) counts(ctx context.Context, t *testing.T, want map[timeout.Shard]map[timeout.State]int) {
	t.Helper()
	got, err := c.Count(ctx)
	if err != nil {
		t.Fatalf("count: %v", err)
	}
	same(t, "counts", got, want)
}

func idsOf(rows []timeout.Row) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// numbered returns n identities in their order.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("t%06d", i)
	}
	return ids
}

// same fails the test unless the values are equal; no slice equals an empty one.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
