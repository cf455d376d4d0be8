package internal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The stops of docs/tour.md fit three hours: their files exist, and have as many lines as it says.
func TestTourFitsThreeHours(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	stops, more, _ := strings.Cut(string(page), "\n## Another day\n")
	lines := 0
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(stops+more, -1) {
		text, err := os.ReadFile(filepath.Join("../docs", link[1]))
		if err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(link[1], ".md") && strings.Contains(stops, link[0]) {
			lines += bytes.Count(text, []byte("\n"))
		}
	}
	if lines < 2500 || lines > 3250 {
		t.Errorf("the tour has %d lines, want about 3,200", lines)
	}
	t.Logf("%d lines", lines)
}
