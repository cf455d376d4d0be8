package lab_test

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"example.com/shop/internal/show/lab"
)

var (
	// rows and grants of a picture in docs. A row begins with its name, such as "fenced: A".
	pictureRows   = regexp.MustCompile(`<text x="8.0" y="\d+" fill="#1b1f24">([^<]*)</text>`)
	pictureGrants = regexp.MustCompile(`<rect x="([\d.]+)"[^>]*><title>([^<]*)</title></rect>(?:<text [^>]*>token \D*(\d+)</text>)`)
	rawTokens     = regexp.MustCompile(`^fencing token (\d+)$`)
)

// drawn is a lease in a picture: where it begins, which label it has, and the fencing token that a pointer shows.
type drawn struct {
	row   string
	at    float64
	label int
	token uint64
}

// grantsOf returns the leases with a token by scene.
func grantsOf(t *testing.T, svg string) map[string][]drawn {
	t.Helper()
	found := make(map[string][]drawn)
	rows := pictureRows.FindAllStringSubmatchIndex(svg, -1)
	for i, at := range rows {
		end := len(svg)
		if i+1 < len(rows) {
			end = rows[i+1][0]
		}
		row := svg[at[2]:at[3]]
		scene, _, _ := strings.Cut(row, ": ")
		for _, g := range pictureGrants.FindAllStringSubmatch(svg[at[0]:end], -1) {
			x, errX := strconv.ParseFloat(g[1], 64)
			label, errLabel := strconv.Atoi(g[3])
			raw := rawTokens.FindStringSubmatch(g[2])
			if errX != nil || errLabel != nil || raw == nil {
				t.Errorf("%s: a lease at %s has the label %s and the title %q; want the token", row, g[1], g[3], g[2])
				raw = []string{"", "0"}
			}
			token, _ := strconv.ParseUint(raw[1], 10, 64)
			found[scene] = append(found[scene], drawn{row, x, label, token})
		}
	}
	return found
}

// Of each two leases of a lock in a picture, the one that was granted later has the larger token and the larger label.
func TestNewerTokensHaveLargerLabels(t *testing.T) {
	t.Parallel()
	pairs := 0
	for _, l := range lab.All() {
		for scene, all := range grantsOf(t, read(t, l.File()+".svg")) {
			for i, a := range all {
				for _, b := range all[:i] {
					pairs++
					if c := cmp.Compare(a.at, b.at); cmp.Compare(a.label, b.label) != c || cmp.Compare(a.token, b.token) != c {
						t.Errorf("%s.svg, %s: %+v and %+v are in different orders", l.File(), scene, a, b)
					}
				}
			}
		}
	}
	if pairs < 6 { // labs 3, 4 and 7 have two each
		t.Errorf("the pictures have %d pairs of tokens, want at least 6", pairs)
	}
}
