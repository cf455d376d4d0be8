package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSoakIsResumed runs tools/soak.sh in a clone whose Makefile writes down what it is asked for, and fails one group. The next
// run repeats this group alone. Each change of the code repeats all until it is committed, and so does a new file.
func TestSoakIsResumed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clone")
	in(t, "..", "git clone -q . '"+dir+"'")
	const makefile = "soak-group test-bench faults:\n\t@echo '$@ $(PACKAGES) $(RUN)' >>.git/asked\n\t@test '$(PACKAGES)' != \"$$(cat .git/broken)\"\n"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", makefile)
	write(".git/broken", "./internal/order/...")
	const commit = "git -c user.name=t -c user.email=t@example.com commit -qam change"
	in(t, dir, commit)
	soak := func(wantCode int, args ...string) (asked []string, output string) {
		write(".git/asked", "")
		cmd := exec.CommandContext(t.Context(), "nice", append([]string{"-n", "5", "tools/soak.sh"}, args...)...) // it starts thousands of processes
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != wantCode {
			t.Errorf("%q: exit code %d, want %d: %v\n%s", args, code, wantCode, err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, ".git/asked"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n"), string(out)
	}

	if _, out := soak(2, "nothing"); !strings.Contains(out, "no group nothing; there are") {
		t.Errorf("an unknown group: %s", out)
	}
	first, _ := soak(1)
	tests := regexp.MustCompile(`\bTest\w+`).FindAllString(strings.Join(first, "\n"), -1)
	all := regexp.MustCompile(`(?m)^func Test\w+\(t `).FindAllString(in(t, filepath.Join(dir, "internal/e2e"), "cat $(go list -f '{{join .TestGoFiles \" \"}} {{join .XTestGoFiles \" \"}}')"), -1)
	if len(all) == 0 || len(tests) != len(all) {
		t.Errorf("%d tests of e2e are in groups, want %d", len(tests), len(all))
	}
	if again, _ := soak(1); len(first) < 20 || len(again) != 1 || !strings.Contains(again[0], "./internal/order/...") {
		t.Errorf("%d groups, and then %q; want many, and then the one that failed", len(first), again)
	}
	write(".git/broken", "none")
	write("docs/tour.md", "text\n")
	in(t, dir, "echo '// More.' >> internal/order/doc.go && git add -A && "+commit)
	if last, _ := soak(0); len(last) != 2 || !strings.HasSuffix(last[1], "/e2e/orderpath") {
		t.Errorf("after a commit of texts and comments: %q, want the one that failed, and the one that counts lines", last)
	}
	repeatedAfterATest(t, dir, commit, soak)
	for _, text := range []string{"# more\n", "# and more\n"} {
		write("Makefile", makefile+text)
		if all, _ := soak(0); len(all) != len(first) {
			t.Errorf("%d groups after a change, want %d", len(all), len(first))
		}
	}
	if _, out := soak(1, "order"); !strings.Contains(out, "soak: not passed for the files of ") {
		t.Errorf("one group of changes: %s", out)
	}
	write("Makefile", makefile)
	if all, _ := soak(0); len(all) != len(first) {
		t.Errorf("%d groups without the changes that their results have, want %d", len(all), len(first))
	}
	if none, _ := soak(0); strings.Join(none, "") != "" {
		t.Errorf("%d groups that have passed, want none", len(none))
	}
	write("internal/order/new.go", "package order\n")
	if all, _ := soak(0); len(all) != len(first) {
		t.Errorf("%d groups with a new file, want %d", len(all), len(first))
	}
}

// repeatedAfterATest changes tests, each of which repeats its group and the faults; one of e2e repeats all of e2e.
func repeatedAfterATest(t *testing.T, dir, commit string, soak func(int, ...string) ([]string, string)) {
	t.Helper()
	for name, want := range map[string]string{
		"order/ordertest/ordertest_test.go": "./internal/order/...",
		"e2e/webhook_test.go":               "./internal/e2e", // all of it is one package
	} {
		in(t, dir, "echo >> internal/"+name+" && "+commit)
		some, _ := soak(0)
		ofE2E := len(slices.DeleteFunc(slices.Clone(some), func(s string) bool { return !strings.Contains(s, "/e2e ") }))
		if text := strings.Join(some, "\n"); !strings.Contains(text, want) || !strings.Contains(text, "faults") || ofE2E < 10 && len(some) != 2 {
			t.Errorf("after a change of a test, %s: %q", name, some)
		}
	}
}
