// Package demo runs a flash sale that a person can watch. Several instances sell the same stock, once per strategy.
// Then an audit of the database decides which strategies oversold.
//
// A variant is one sale of one SKU by one strategy. Buyers, each with its own connection, wait at a barrier and
// then make all attempts, distributed over the instances. Every attempt is a new customer that wants one unit. A
// variant is exact if three conditions hold:
//
//  1. As many units were accepted as there were units or buyers, whichever is less.
//  2. Every customer that received 201 has an order, and no other customer has one.
//  3. Columns, ledger and orders agree.
//
// naive and local are the unsafe baselines. If they do not oversell, the load was too weak, and the exact variants
// prove nothing: such a run is inconclusive, not passed. Each baseline gets up to three sales. redis-unfenced gets
// three sales for the opposite reason: it may oversell if a holder is paused for longer than its lease lasts. The
// report says if a sale was repeated.
//
// Then the demo shows time limits. Instances that give orders a few seconds take an order for each unit of a new
// SKU. No customer pays, and one of the instances is killed. The others have to release every unit once, not before
// its order has expired, and sell it again to a customer that pays. The ledger has the times of expiry and release,
// so both are by the database's clock. The delay depends on the machine and decides nothing below two minutes.
package demo
