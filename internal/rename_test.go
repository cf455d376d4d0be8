package internal_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRenameModule renames the module of a clone, which then is complete; no tracked file has the old path. Bad paths change nothing. Once a module
// proxy has the renamed module, the go command runs its program by the path alone. With -trimpath each run finds what earlier runs have built.
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
	in(t, dir, "test -z \"$(gofmt -l cmd internal bench)\" && go list -test ./... >/dev/null")
	in(t, filepath.Join(dir, "bench"), "go list -test ./... >/dev/null")
	run := "export " + strings.Join(fromProxy(t, dir, renamed), " ") + "; go run " + renamed + "/cmd/shop@latest "
	if got := in(t, t.TempDir(), run+"version"); !strings.HasSuffix(got, "\nv1.2.3\n") { // after what is downloaded
		t.Errorf("the program prints %s", got)
	}
	if os.Getenv("SHOP_TEST_SOAK") == "1" {
		in(t, t.TempDir(), run+"demo")
	}
}

// fromProxy commits the changes of a clone, and publishes it as v1.2.3 of a module by a proxy of its own. With the variables that it returns, the go
// command asks this proxy. Other modules come from the machine's module cache, in which nothing changes.
func fromProxy(t *testing.T, clone, module string) []string {
	t.Helper()
	published := t.TempDir()
	at := filepath.Join(published, module, "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	const version = "v1.2.3"
	for name, text := range map[string]string{"list": version, version + ".info": `{"Version":"` + version + `"}`} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in(t, clone, "git -c user.name=a -c user.email=a@b commit -qam renamed && cp go.mod '"+at+"/"+version+".mod'")
	// Modules below the root are not part of it.
	in(t, clone, "git archive --format=zip --prefix='"+module+"@"+version+"/' -o '"+at+"/"+version+".zip' HEAD $(git ls-files '*/go.mod' | sed 's#^#:!#; s#/go.mod$##')")
	proxy := httptest.NewServer(http.FileServer(http.Dir(published)))
	t.Cleanup(proxy.Close)
	cache := strings.TrimSpace(in(t, clone, "go env GOMODCACHE"))
	return []string{
		"GOPROXY='" + proxy.URL + ",file://" + cache + "/cache/download'", "GOMODCACHE='" + t.TempDir() + "'", "GONOSUMDB='*'",
		"GOFLAGS='-trimpath -modcacherw'",
	}
}
