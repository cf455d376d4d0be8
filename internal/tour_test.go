package internal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/tour.md is a day of reading: its files exist, and are as many lines as it says.
func TestTourIsADay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(page), -1) {
		text, err := os.ReadFile(filepath.Join("../docs", link[1]))
		if err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(link[1], ".md") {
			lines += bytes.Count(text, []byte("\n"))
		}
	}
	if lines < 2500 || lines > 4050 {
		t.Errorf("the tour has %d lines, want about 4,000", lines)
	}
	t.Logf("%d lines", lines)
}
