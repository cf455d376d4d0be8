// Package demo is the flash sale that a person watches: the same stock is sold
// from several instances at once, once per strategy, and then the books are
// audited in the database.
//
// A variant is one sale of one SKU by one strategy. Buyers, each with its own
// connection, wait at a barrier, and then make all attempts, which go round the
// instances. Every attempt is a customer of its own who wants one unit. A variant
// is exact when as many units were accepted as there were units or buyers,
// whichever is less, when every customer who received 201 has an order and nobody
// else has, and when columns, ledger and orders agree.
//
// naive and local are the unsafe baselines. If they do not oversell, the load was too
// weak to show anything, and the exact variants alongside them prove nothing: such a
// run is inconclusive, not passed. Each has three sales to do it in. redis-unfenced has
// as many for the opposite: it may oversell where a holder is paused for longer than its
// lease lasts. That a sale was repeated is part of the report.
//
// Then time limits are shown. Instances that give orders a few seconds take one for
// each unit of a new SKU, nobody pays, and one of the instances is killed. The
// others have to give every unit back, once and not before its order has expired,
// and sell it again to somebody who pays. When an order has expired and when its
// unit came back is read from the books, so both are times of the database's clock.
// How late that is depends on the machine and decides nothing, as long as it is
// within two minutes.
package demo
