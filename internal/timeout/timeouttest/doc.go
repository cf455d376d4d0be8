// Package timeouttest holds the conformance suites of [timeout.Index] and
// [timeout.Store]. Every backend runs its suite, against a real server where it
// has one. The names of the cases are the promises of the contracts, for documents to link to.
//
// A harness has the ways to reach a backend and to inject faults. If a backend cannot do something, the
// harness leaves it out, and the cases that need it are skipped.
// Every case has kinds of its own, so that cases run in parallel on one server, and every
// wait has a deadline of its own, so that a broken backend fails instead of hanging.
package timeouttest
