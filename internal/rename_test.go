package internal_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRenameModule renames the module of a clone, which then builds; no tracked file has the old path. Bad paths change nothing.
// With -trimpath each run finds what earlier runs have built, wherever the clone is.
func TestRenameModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(root, "bench")} { // what tests import is downloaded now: the clone has no proxy
		list := exec.CommandContext(t.Context(), "go", "list", "-test", "./...")
		list.Dir = dir
		if err := list.Run(); err != nil {
			t.Fatal(err)
		}
	}
	const renamed, old = "github.com/acme/stock-shop", "example.com/shop"
	dir := filepath.Join(t.TempDir(), "clone")
	in(t, t.TempDir(), "git clone -q '"+root+"' '"+dir+"'")
	for path, reason := range map[string]string{
		"": "name one module path", "shop": "is a host", old: "already", "Foo.com/../x": "is no module path", "-x.y": "is no module path",
	} {
		cmd := exec.CommandContext(t.Context(), "tools/rename-module", strings.Fields(path)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), reason) {
			t.Errorf("%q: %v, %s; want exit code 2 and %q", path, err, out, reason)
		}
	}
	in(t, dir, `test -z "$(git status --porcelain)"`)
	in(t, dir, "tools/rename-module "+renamed)
	in(t, dir, "! git grep -nIE '"+strings.ReplaceAll(old, ".", `\.`)+`(/|"|$)'`)
	in(t, dir, "test -z \"$(gofmt -l cmd internal bench)\" && go list -test ./... >/dev/null && go build -trimpath -o shop ./cmd/shop")
	in(t, filepath.Join(dir, "bench"), "go list -test ./... >/dev/null")
}
