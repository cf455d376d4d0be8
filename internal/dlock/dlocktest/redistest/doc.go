// Package redistest has what tests of the primitives on Redis have in common: clients, with
// and without a proxy, and the harnesses for the conformance tests.
package redistest

import "time"

// TTL is that of what tests acquire.
const TTL = 3 * time.Second
