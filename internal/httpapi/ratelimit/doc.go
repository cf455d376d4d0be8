// Package ratelimit limits how often each key may begin an operation, over all instances.
//
// [Limiter] is the generic cell rate algorithm of the library redis_rate: one script per operation. Operations that
// arrive during a round trip share the next one (RatesShareRoundTrips).
//
// The limiter fails open. If Redis fails, or takes longer than Config.Timeout, each instance decides by a token
// bucket per key for Config.Cooldown. So one operation per cooldown waits for Redis, not every one. The bucket has
// the instance's part of the rate, and a key can begin up to its burst again. The number of buckets is bounded. A
// client that uses more keys than that at once has as many bursts. So a key must have a cost, as an account has,
// and a header has not.
//
// A rate admits the same load when operations become slow. Package permits limits how many are in flight.
package ratelimit
