// Package throughput measures how many orders per second the service places by each strategy, on real servers, and prints
// what limits it.
//
// # Measurement
//
// A variant is a strategy. All variants sell on the same instances, which are separate processes, through the same
// API and into the same database, which flushes at every commit. In each round every variant has one turn, and each
// round begins with another variant. So a machine that becomes slower does so for all variants. A figure is the
// median of the rounds, and a ratio is the median of the ratios within a round. Each turn sells a new SKU with
// plenty of units, after a warm-up whose orders only the audit counts.
//
// The load is a closed loop: each connection sends its next request when it has its response. The measured latency is
// that of a service at its limit. With a rate, the load is an open loop: orders arrive by the clock, even if earlier
// ones have no response yet. The latency then counts from the time at which an order was due. So a service that
// stalls is charged for the orders that waited.
//
// In a last turn every variant sells out a SKU of few units to at most 96 buyers. The audit of the database counts
// the units oversold and undersold, and the lost updates, in all turns.
//
// # Comparison
//
// A variant is compared with naive and conditional in the same run, and with two limits. The first limit is how
// many commits, and how many rows in large transactions, the database takes from the same number of connections.
// The second limit is how many requests the HTTP stack answers if they ask for nothing. The load generator runs on
// the same machine, and the report has its share of the processors.
package throughput
