package cli

import "strings"

// nearest returns the name that the user probably meant by word, or nothing. Names that begin with the word, or
// differ by a third of its letters at most, or end with "-" and the word, are near.
func nearest(word string, names []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, name := range names {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, name := range names {
		if strings.HasPrefix(name, word) || strings.HasSuffix(name, "-"+word) {
			return name
		}
	}
	return ""
}

// distance returns the restricted Damerau-Levenshtein distance of a and b. An edit inserts, deletes or replaces a
// byte, or swaps two neighbors.
func distance(a, b string) int {
	previous, row := make([]int, len(b)+1), make([]int, len(b)+1)
	older := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, previous, row = previous, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := previous[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(previous[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
