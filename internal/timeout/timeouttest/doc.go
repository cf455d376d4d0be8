// Package timeouttest has the conformance tests of [timeout.Index] and [timeout.Store]. Every backend runs its
// tests, against a real server if it has one. The names of the cases are the guarantees of the contracts, and
// documents link to them.
//
// A harness gives the tests access to a backend and to its faults. If a backend lacks a capability, its harness
// omits it, and the cases that need it are skipped. Every case has its own timer types, so cases run in parallel on
// one server. Every wait has its own deadline, so a broken backend fails instead of hanging.
package timeouttest
