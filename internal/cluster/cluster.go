package cluster

import (
	"context"
	"iter"
)

// Membership lists the instances of a service. It is safe for
// concurrent use.
//
// Guarantees, by test: Every instance lists those that have joined, and none that has left (JoinIsSeen, LeaveIsSeen,
// FirstViewIsOfNow). Changes are merged for slow consumers (ChangesAreMerged), and in a storm for all: a sequence costs
// one reading per gap. A reading is one request, whatever the number of members (StormIsMerged,
// StormCostsOneReadingPerGap). A live member keeps its name (NameIsTaken, OneOfTwoGetsTheName), and frees it
// (NameIsFreeAfterLeave). A restart joins at once, and the previous instance ends (RestartJoinsAtOnce,
// ReplacedWhileAway, NameIsTakenWhileAway). A member whose entry is lost, with its session or by deletion, joins again
// by itself (LostEntryComesBack, CutOffMemberComesBack). A lost reply leaves no second entry (LostReplyLeavesOneEntry).
// An instance that is cut off keeps its list and reports that it is stale (StaleIsReported). Foreign entries are
// ignored, counted, and reported once (StraysAreIgnored).
//
// A live member has its name alone. If a name is in use, Join waits for as long as the store keeps the entry of a dead
// instance. Then it fails with [ErrNameTaken]. An instance that restarts after a crash does not wait. It has the same
// name and address, on which no other process can listen, and replaces its entry at once. If the previous instance is
// alive, it ends with [ErrReplaced] and does not take the name back. So two instances that have the same name and
// address by mistake do not alternate.
type Membership interface {
	// Join makes m a member, under a name that no other live instance has. It blocks until m is listed, the name turns
	// out to be taken, or ctx ends; while the store does not answer it tries again. An entry with the same name and
	// address is that of the same instance before a restart, and is replaced at once. If another address has the name,
	// Join waits for as long as a dead instance is listed, and then returns a [*NameTakenError]. Otherwise the error is
	// that of m, or of ctx. After an error m is not listed, or soon will not be. The presence outlives ctx, from which
	// it takes values only.
	Join(ctx context.Context, m Member) (*Presence, error)

	// Members returns a sequence of the members: the present view, and a view after each change. Changes
	// that follow each other quickly make one step. It waits for changes while it is ranged over, and ends
	// when ctx does. When the store does not answer, the last view comes once more, with [ErrStale] and the
	// reason. The next view without an error is up to date. If the store does not answer from the
	// beginning, the first view is empty and comes with ErrStale.
	Members(ctx context.Context) iter.Seq2[View, error]
}

// ConfigStore stores configuration as texts. [Settings] parses them. It is safe for concurrent use.
type ConfigStore interface {
	// Entries returns a sequence of those entries that have one of names, with the
	// rules of [Membership].Members.
	Entries(ctx context.Context, names ...string) iter.Seq2[map[string]Entry, error]

	// Write replaces the entry of name if it has that version; version 0 means that there must be none. It returns the
	// new version, which is greater. Errors: a [*ConflictError] if another write came first, and then nothing is
	// changed; [ErrReadOnly]; [ErrUncertain] if the store did not answer; or the store's refusal.
	Write(ctx context.Context, name, text string, version int64) (int64, error)
}

// Entry is the value of a setting as a store has it.
type Entry struct {
	Text    string
	Version int64 // 1 or more, and grows with each write
}
