// Package throughput measures how many orders the service takes, by which strategy, on real
// servers, and prints what bounds it.
//
// # What is measured
//
// A variant is a strategy. All variants sell on the same instances, which are processes of their
// own, through the same API and into the same database, which flushes at every commit. In each
// round every variant has its turn, each time beginning with another one, so that a machine that
// becomes slower does so for all; a figure is the median of the rounds, and a ratio the median of
// the ratios within a round. Each turn sells a new SKU of which there is plenty, after a
// warm-up whose orders count for the books only.
//
// The load is a closed loop: so many connections, each of which asks again when it has its
// answer. Its latency is that of a service at its limit. With a rate it is an open
// loop: orders arrive by the clock, whether those before them have been answered or
// not, and the latency counts from the time at which an order was due, so that a
// service which stalls is not spared the orders that it kept waiting.
//
// In a last turn every variant sells out a SKU of few units to 96 buyers at most. What it oversells,
// undersells, or loses of updates, there and before, comes from the books in the database.
//
// # What it is compared with
//
// With naive and conditional in the same run, and with two limits: how many commits, and
// how many rows in large transactions, the database takes from the same number of
// connections, and how many requests the HTTP stack answers that ask for nothing.
// The load generator runs on the same machine, and its share of the processors is reported
// alongside those of the servers.
package throughput
