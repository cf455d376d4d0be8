package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra/doc"

	"example.com/shop/internal/cli"
)

var man = flag.String("man", "", "write the manual pages to this folder")

// TestManPages writes a page for each command, with its flags and examples. A release has them.
func TestManPages(t *testing.T) {
	t.Parallel()
	folder := *man
	if folder == "" {
		folder = t.TempDir()
	}
	root := program(cli.Process{Getenv: noEnv})
	root.DisableAutoGenTag = true
	commands := below(root)
	for _, p := range commands {
		for _, fl := range cli.FlagsOf(p) {
			fl.Flag.Usage = sentence(fl)
		}
	}
	epoch := time.Unix(0, 0).UTC() // the same in each build of a release
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "SHOP", Section: "1", Source: "shop", Manual: "Shop", Date: &epoch}, folder); err != nil {
		t.Fatal(err)
	}
	for _, p := range commands {
		text, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(p.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, fl := range cli.FlagsOf(p) {
			if name := strings.ReplaceAll(fl.Name, "-", `\\-`); !strings.Contains(string(text), "--"+fl.Name) && !strings.Contains(string(text), `\-\-`+name) {
				t.Errorf("the page of %s has no flag --%s", p.CommandPath(), fl.Name)
			}
		}
	}
}
