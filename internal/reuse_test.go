package internal_test

import (
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

const reusePage = "../docs/how-to/reuse-a-package.md"

// TestReusePage runs the commands of docs/how-to/reuse-a-package.md in fresh modules, for the packages of each row of its table. In the
// module with the lock it also runs the program of the page.
func TestReusePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(reusePage)
	if err != nil {
		t.Fatal(err)
	}
	commands := shell(string(page))
	settings, steps, run := commands[0], commands[1:len(commands)-1], commands[len(commands)-1]
	for _, set := range reused(t, string(page)) {
		t.Run(strings.ReplaceAll(set, "/", "."), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			reuse(t, dir, reuseSettings(t, settings, set), steps)
			copiedAlone(t, dir, set)
			if set == "dlock/redislock" {
				takesLocks(t, dir, program(t, string(page)), run)
			}
		})
	}
}

// shell returns the blocks of shell commands of a page, without their indentation.
func shell(page string) (blocks []string) {
	for _, block := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, regexp.MustCompile("(?m)^ +").ReplaceAllString(block[1], ""))
	}
	return blocks
}

// reused returns the packages of each row of the page's table. They have what the page promises at the least.
func reused(t *testing.T, page string) (sets []string) {
	t.Helper()
	for _, row := range regexp.MustCompile("(?m)^\\| [^|`]+ \\| `([^`|]+)` \\|$").FindAllStringSubmatch(page, -1) {
		sets = append(sets, row[1])
	}
	all := "\n" + strings.Join(sets, "\n") + "\n"
	for _, set := range []string{"dlock/redislock", "timeout/memindex timeout/sqltimers", "httpapi/ratelimit", "dlock/permits/redispermits"} {
		if !strings.Contains(all, "\n"+set+"\n") {
			t.Fatalf("the table has no row for %s: %q", set, sets)
		}
	}
	return sets
}

// reuseSettings returns the settings of the page for this checkout and these packages.
func reuseSettings(t *testing.T, settings, packages string) string {
	t.Helper()
	shop, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"SHOP": shop, "PACKAGES": packages} {
		line := regexp.MustCompile(`(?m)^` + name + `=.*$`)
		if !line.MatchString(settings) {
			t.Fatalf("the page does not set %s: %q", name, settings)
		}
		settings = line.ReplaceAllLiteralString(settings, name+`="`+value+`"`)
	}
	return settings
}

// reuse runs the commands of the page in dir, as a reader pastes them.
func reuse(t *testing.T, dir, settings string, steps []string) {
	t.Helper()
	if len(steps) != 4 {
		t.Fatalf("the page has %d steps after the settings, not 4", len(steps))
	}
	script := "set -eu\n" + settings + strings.Join(steps, "")
	in(t, dir, script)
}

// in runs a script in dir, and returns its output.
func in(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script)
	}
	return string(out)
}

// program returns the Go program of a page, which must be formatted.
func program(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d programs, not 1", len(found))
	}
	formatted, err := format.Source([]byte(found[0][1]))
	if err != nil || string(formatted) != found[0][1] {
		t.Fatalf("the program is not formatted: %v", err)
	}
	return found[0][1]
}

// takesLocks writes the program of the page to dir and runs it twice, against a Redis server, by the command of the page.
func takesLocks(t *testing.T, dir, program, run string) {
	t.Helper()
	const address = "redis://127.0.0.1:6379"
	if strings.Count(run, address) != 1 {
		t.Fatalf("%q does not name %s once", run, address)
	}
	run = strings.Replace(run, address, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL(), 1)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	in(t, dir, "go vet ./...")
	var last uint64
	for range 2 {
		out := in(t, dir, run)
		var token uint64
		if _, err := fmt.Sscanf(out, "held with fencing token %d\n", &token); err != nil || token <= last {
			t.Errorf("want a token that is higher than %d: %q: %v", last, out, err)
		}
		last = token
	}
}

// copiedAlone checks that a module has the packages, and nothing that names this module.
func copiedAlone(t *testing.T, dir, packages string) {
	t.Helper()
	for p := range strings.FieldsSeq(packages) {
		if files, _ := filepath.Glob(filepath.Join(dir, "internal", p, "*.go")); len(files) == 0 {
			t.Errorf("%s was not copied", p)
		}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "example.com/shop") {
			t.Errorf("%s names the module that it was copied from", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
