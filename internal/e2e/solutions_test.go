package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

var solutionBlocks = regexp.MustCompile("(?ms)^```(sh|diff)( soak)?\n(.*?)^```$")

// The commands of the solutions of the labs end without an error, and the changes of the code apply. Commands that take long, and those that
// follow a change, run at full size only.
func TestSolutionsOfExercisesRun(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/labs/solutions/*[a-y].md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	found := 0
	for _, page := range pages {
		if strings.HasSuffix(page, ".zh.md") {
			continue
		}
		change := ""
		for i, b := range solutionBlocks.FindAllStringSubmatch(fileText(t, page), -1) {
			found++
			if b[1] == "diff" {
				change = b[3]
				apply(t, "../..", change, "--check")
				continue
			}
			if b[2] != "" && testbedtest.Size(0, 1) == 0 {
				continue
			}
			dir, script := "../..", strings.ReplaceAll(b[3], "go run ./cmd/shop ", fmt.Sprintf("%q ", program))
			if change != "" {
				dir, script, change = changed(t, change), b[3], ""
			}
			t.Run(fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(page), ".md"), i), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testbedtest.Size(2, 10))*time.Minute)
				defer cancel()
				bash := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
				bash.Dir, bash.Env = dir, environment(nil)
				if out, err := bash.CombinedOutput(); err != nil {
					t.Errorf("%s: %v:\n%s%s", page, err, b[3], out)
				}
			})
		}
	}
	if found < 15 {
		t.Errorf("the solutions have %d blocks of commands", found)
	}
}

// apply applies a change of the code.
func apply(t *testing.T, dir, change string, flags ...string) {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "apply"}, flags...)...)
	git.Stdin = strings.NewReader(change)
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, change)
	}
}

// changed returns a worktree of the last commit with a change.
func changed(t *testing.T, change string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "worktree", "add", "--quiet", "--detach", dir, "HEAD").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := exec.CommandContext(context.WithoutCancel(t.Context()), "git", "-C", "../..", "worktree", "remove", "--force", dir).Run(); err != nil {
			t.Error(err)
		}
	})
	apply(t, dir, change)
	return dir
}

// A lab that shop lab new has written compiles, runs, and shows its effect and its cure.
func TestNewLabCompilesAndRuns(t *testing.T) {
	t.Parallel()
	const folder = "internal/show/lab"
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, folder, "texts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, folder, "lab.go"), []byte(fileText(t, "../../"+folder+"/lab.go")), 0o600); err != nil {
		t.Fatal(err)
	}
	create := exec.CommandContext(t.Context(), program, "lab", "new", "my-own")
	create.Dir, create.Env = root, environment(nil)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	repository, err := filepath.Abs("../..")
	err2 := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			overlay.Replace[repository+strings.TrimPrefix(path, root)] = path
		}
		return err
	})
	if err != nil || err2 != nil || len(overlay.Replace) != 4 {
		t.Fatalf("files %v, %v, %v; want the list, a script and two texts", overlay.Replace, err, err2)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(root, "overlay.json"), filepath.Join(root, "shop")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-overlay", file}
	if withRace {
		flags = append(flags, raceFlags...)
	}
	if err := build(binary, flags...); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), binary, "lab", "run", "my-own", "--small")
	run.Env = environment(nil)
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "Verdict   shown") {
		t.Errorf("the new lab: %v\n%s", err, out)
	}
}
