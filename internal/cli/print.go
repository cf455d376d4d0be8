package cli

import (
	"encoding/json"
	"io"
	"strings"
)

// printIndented prints v as JSON for people and programs.
func printIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// oneLine keeps a text from breaking the table, or the terminal.
func oneLine(s string, longest int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s))
	if len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return string(runes)
}
