// Package clustertest has the conformance tests of package cluster. Every backend runs them, against a real server
// if it has one. The names of the cases are the guarantees of the contracts, and documents link to them.
//
// A [Harness] gives the tests access to the store and to its faults. If a backend lacks a capability, its harness
// omits it, and the cases that need it are skipped. Every case has its own group, so cases run in parallel on one
// store. Every wait has its own deadline, so a broken backend fails instead of hanging. Deadlines are generous, for
// busy machines; measured times are logged.
package clustertest

import (
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Instance is what one instance has of the cluster.
type Instance struct {
	cluster.Membership
	cluster.ConfigStore

	// Elect returns the instance as a candidate of that name, and as an observer. Nil: the store has no elections.
	Elect func(key, name string) (cluster.Election, error)
}

// Link is the network between one instance and the store.
type Link struct {
	Cut  func() // holds all bytes back both ways; connections stay open
	Heal func() // ends Cut, and delivers what was held back

	// LoseJoin loses the reply to the next request that makes a member, once the store has executed it. LoseWrite does
	// so with a write of configuration. Lost is how many replies were lost.
	LoseJoin, LoseWrite func()
	Lost                func() int
}

// Harness describes one backend.
type Harness struct {
	// New returns another instance of a group, as another process would have it.
	New func(t testing.TB, group string, onError func(error)) Instance

	// TTL is how long an instance that has died is listed, and leads for the others.
	// 0: none dies.
	TTL time.Duration

	// Seen is how long it takes at most until a change is seen by all, on a machine that
	// is not busy.
	Seen time.Duration

	// Waiting returns what counts the candidates that wait for the leadership of group. Nil: they are not elected in the
	// order in which they came.
	Waiting func(t testing.TB, group string) func() int

	// Depose takes the leadership of group from its leader.
	Depose func(t testing.TB, group string)

	// Behind returns an instance whose network can be broken. Nil: there is no network.
	Behind func(t testing.TB, group string) (Instance, Link)

	// Expire makes the store drop the entry of a member of group.
	Expire func(t testing.TB, group, name string)

	// Stray puts entries among the members of group that are none, and returns how many
	// of them are counted. Nil: nobody else can.
	Stray func(t testing.TB, group string) int

	// Poke gives a setting of group a text that nobody has checked, and Unset deletes its
	// entry. Nil: nobody else can.
	Poke  func(t testing.TB, group, name, text string)
	Unset func(t testing.TB, group, name string)

	// Process says how to run an instance of group in a process of its own: by the test
	// that calls [Serve], with additional environment variables. Nil: it cannot be.
	Process func(t testing.TB, group string) (test string, environment []string)

	// Unlocked reports whether the store can be written while a process is paused. Nil: it always can.
	Unlocked func(t testing.TB) bool
}

type testCase struct {
	name string
	fn   func(t testing.TB, h Harness, group string)
}

// Run checks the promises of membership and election.
func Run(t *testing.T, h Harness) {
	t.Helper()
	run(t, h, membershipCases())
	run(t, h, electionCases())
	run(t, h, processCases())
}

// RunConfig checks the promises of configuration.
func RunConfig(t *testing.T, h Harness) {
	t.Helper()
	run(t, h, configCases())
}

func run(t *testing.T, h Harness, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				c.fn(t, h, c.name+"-"+rand.Text()) // another run may use the same server
			})
		})
	}
}

// maxWait bounds a wait for an event that takes a moment. It is long for any machine.
const maxWait = 30 * time.Second

// promptly fails the test if a change was never seen in time, however often it was tried.
func (h Harness) promptly(t testing.TB, what string, took []time.Duration) {
	t.Helper()
	t.Logf("%s is seen after %v", what, took)
	if quickest := slices.Min(took); quickest > h.Seen {
		t.Errorf("%s is seen only after %v", what, quickest)
	}
}

// open returns an instance that reports its errors to no observer.
func (h Harness) open(t testing.TB, group string) Instance {
	t.Helper()
	return h.New(t, group, func(error) {})
}

// dying returns the TTL, or skips a case that needs one.
func (h Harness) dying(t testing.TB) time.Duration {
	t.Helper()
	if h.TTL == 0 {
		t.Skip("instances do not die")
	}
	return h.TTL
}

// behind returns an instance whose network can be broken, or skips the case.
func (h Harness) behind(t testing.TB, group string) (Instance, Link) {
	t.Helper()
	if h.Behind == nil {
		t.Skip("there is no network")
	}
	return h.Behind(t, group)
}
