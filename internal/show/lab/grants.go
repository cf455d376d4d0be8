package lab

import (
	"fmt"
	"slices"
	"strconv"
)

// grants are the fencing tokens that a lab has seen of one lock. A token is a clock in microseconds: its last digits do not show which of
// two tokens is newer. So texts and pictures show its ordinal.
type grants []uint64

// add adds the token of a grant, as a process reports it.
func (g *grants) add(token string) {
	n := must(strconv.ParseUint(token, 10, 64))
	if i, known := slices.BinarySearch(*g, n); !known {
		*g = slices.Insert(*g, i, n)
	}
}

// ordinal returns #n for the nth token, so the newer one of two tokens has the larger ordinal.
func (g grants) ordinal(token string) string {
	i, known := slices.BinarySearch(g, must(strconv.ParseUint(token, 10, 64)))
	if !known {
		fail("no grant has the token %s", token)
	}
	return fmt.Sprintf("#%d", i+1)
}
