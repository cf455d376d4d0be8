// Package ratelimit bounds how often each key may begin an operation, over all instances.
//
// [Limiter] is the generic cell rate algorithm, by the library redis_rate: one script
// for each operation, since a customer's few operations are not worth leasing. Those who
// ask while a round trip is under way share the next one (RatesShareRoundTrips). It fails
// open: when Redis fails or takes longer than Config.Timeout, each instance decides
// by a token bucket per key for Config.Cooldown, so that
// one operation per cooldown waits, not each. The bucket has the part of one instance
// of the rate. Then a key can begin up to its burst again. The buckets are bounded in
// number; who can use more keys than that in a moment has as many bursts, so a key
// must cost something: that of an account, not that of a header.
//
// A rate admits the same load when operations become slow. Package permits bounds how many are in flight.
package ratelimit
