package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A small database is filled, its books are right, and its sale is compared with that of an empty one.
func TestSmallDatabase(t *testing.T) {
	t.Parallel()
	url := func(name string) string { return "sqlite:" + filepath.Join(t.TempDir(), name) }
	var out strings.Builder
	err := run(t.Context(), []string{
		"--database", url("aged.db"), "--empty", url("fresh.db"), "--orders", "3000", "--skus", "10", "--sale", "100ms", "--pairs", "1",
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`3000 orders in `, `first audit: \S+ for 90\d\d ledger entries`, `second audit: \S+ for 0 ledger entries`, `median ratio (\d+\.\d\d|\+Inf), `,
		`audit after the sale: \S+ for [1-9]\d* ledger entries`,
	} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
}

// Numbers with which nothing could be compared are refused before anything is written.
func TestNumbersThatAreTooSmall(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--skus=1": "--skus: want 2 or more", "--pairs=0": "--pairs: want 1 or more"} {
		file := filepath.Join(t.TempDir(), "aged.db")
		if err := run(t.Context(), []string{"--database", "sqlite:" + file, "--orders", "10", flag}, io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the database: %v", flag, err)
		}
	}
}
