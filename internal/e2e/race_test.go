//go:build race

package e2e_test

// withRace says whether this test has the race detector.
const withRace = true
