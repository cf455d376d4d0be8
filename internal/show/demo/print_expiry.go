package demo

import (
	"fmt"
	"slices"
	"strings"
)

// The columns stand where those of the variants do.
const (
	expiryHeader = "\n%-16s %-9s %9s %9s %9s %10s %8s %9s %8s %8s %5s  %s\n"
	expiryRow    = "%-16s %-9s %9d %9d %9d %10d %8d %9d %8.1f %8.1f %5d  %s\n"
)

func (p *printer) expiry(e Expiry) {
	p.printf(expiryHeader, "unpaid orders", "expected", "orders", "fired", "early", "lost", "double", "resold", "p50 ms", "p99 ms", "hit", "verdict")
	p.printf("%s\n", strings.Repeat("-", columns))
	verdict := Exact
	if !e.ok() {
		verdict = Broken
	}
	p.printf(expiryRow, "--order-ttl "+unpaidTTL.String(), Exact, e.Orders, e.Fired, e.Early, e.Lost, e.Double,
		e.second.Accepted, e.P50, e.P99, len(e.second.Instances), mark(verdict, Exact))
	if e.victim != "" {
		p.note("%s", e.story())
	}
	p.note("p50, p99 = delay from the expiry of an order to the release of its unit, by the database's clock")
	if e.err != "" {
		p.note("an answer that is neither yes nor no: %s", e.err)
	}
	if len(e.broken) > 0 {
		p.note("%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(e.broken))), "; "))
	}
}

// story says in one line what happened.
func (e Expiry) story() string {
	when := fmt.Sprintf("%.1f s before the first order expired", e.ahead.Seconds())
	if e.ahead <= 0 {
		when = "while orders expired"
	}
	return fmt.Sprintf("%s was killed (kill -9) %s; the others released %d units, and sold %d to customers of whom %d paid",
		e.victim, when, e.Fired, e.second.Accepted, e.second.Paid)
}

// noExpiry says why no orders were left to expire.
func (p *printer) noExpiry() {
	p.printf("\nNo orders were left to expire: the instances at %s are not the demo's to kill,\nand their orders last for minutes.\n", p.URL)
}

// failure says what a failed run has failed in.
func failure(r Report) string {
	var what []string
	if slices.ContainsFunc(r.Variants, Variant.failed) {
		what = append(what, "a strategy that must be exact was not")
	}
	if r.Expiry != nil && !r.Expiry.ok() {
		what = append(what, "not all unpaid orders released their units once, on time, to be sold again")
	}
	return strings.Join(what, "; ")
}
