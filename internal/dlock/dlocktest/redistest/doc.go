// Package redistest has the parts that tests of the primitives on Redis share: clients, with and without a proxy, and
// harnesses for the conformance tests.
package redistest

import "time"

// TTL is that of what tests acquire.
const TTL = 3 * time.Second
