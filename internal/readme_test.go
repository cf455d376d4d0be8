package internal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The README has at most 150 lines, and its first command is at line 20 at the latest.
func TestREADMEIsShort(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSuffix(readPage(t, "../README.md"), "\n"), "\n")
	if len(lines) > 150 {
		t.Errorf("README.md has %d lines, want at most 150", len(lines))
	}
	if first := strings.Join(lines[:20], "\n"); !strings.Contains(first, "```sh\n") {
		t.Error("README.md has no command in its first 20 lines")
	}
}

// README.zh-CN.md has the sections and the code blocks of README.md, and names the commit of the text that it follows.
func TestREADMEInChineseFollowsTheEnglishOne(t *testing.T) {
	t.Parallel()
	english, chinese := readPage(t, "../README.md"), readPage(t, "../README.zh-CN.md")
	if diff := cmp.Diff(codeBlocks(english), codeBlocks(chinese)); diff != "" {
		t.Errorf("code blocks differ (-English +Chinese):\n%s", diff)
	}
	if diff := cmp.Diff(headingLevels(english), headingLevels(chinese)); diff != "" {
		t.Errorf("levels of headings differ (-English +Chinese):\n%s", diff)
	}
	header, _, _ := strings.Cut(chinese, "\n## ")
	if !regexp.MustCompile("提交 `[0-9a-f]{7,40}`").MatchString(header) {
		t.Error("the header of README.zh-CN.md names no commit of README.md")
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fences are the code blocks of a page.
var fences = regexp.MustCompile("(?ms)^```.*?^```$")

func codeBlocks(page string) []string { return fences.FindAllString(page, -1) }

// headingLevels returns the number signs of each heading.
func headingLevels(page string) (levels []string) {
	for _, h := range regexp.MustCompile(`(?m)^(#+) `).FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		levels = append(levels, h[1])
	}
	return levels
}
