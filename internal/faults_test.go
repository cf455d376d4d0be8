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

const faultsPage = "tools/faults/README.md"

// fault is a patch of tools/faults.
type fault struct {
	path    string
	test    string   // that must fail
	folder  string   // of the test, below root
	file    string   // that it changes, below root
	removed []string // lines of that file
}

var faultForm = regexp.MustCompile(`\ABreaks: .+\nPackage: \./(\S+)\nTest: (\w+)(?:/\S+)?\n\ndiff --git a/(\S+) b/\S+\n(?s:(.*))\z`)

// readFaults returns all planted faults.
func readFaults(t *testing.T) (all []fault) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "tools/faults/*.patch"))
	inPath, err2 := filepath.Glob(filepath.Join(root, "tools/faults/path/*.patch"))
	if err != nil || err2 != nil || len(inPath) == 0 {
		t.Fatal(err, err2, len(inPath))
	}
	for _, path := range append(paths, inPath...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := faultForm.FindStringSubmatch(string(text))
		if m == nil {
			t.Errorf("%s has no header of three lines: Breaks, Package and Test", path)
			continue
		}
		f := fault{path: path, folder: m[1], test: m[2], file: m[3]}
		for line := range strings.Lines(m[4]) {
			if strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---") {
				f.removed = append(f.removed, line[1:])
			}
		}
		all = append(all, f)
	}
	return all
}

// Each planted fault names a test that exists, and changes lines that exist.
func TestPlantedFaultsFit(t *testing.T) {
	t.Parallel()
	s := readSources(t)
	for _, f := range readFaults(t) {
		if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "apply", "--check", strings.TrimPrefix(f.path, root+"/")).CombinedOutput(); err != nil {
			t.Errorf("plant the fault again: %s", out)
		}
		if !s.test(f.folder, f.test) {
			t.Errorf("%s: %s has no test %s", f.path, f.folder, f.test)
		}
		text, err := os.ReadFile(filepath.Join(root, f.file))
		if err != nil {
			t.Error(err)
		}
		for _, line := range f.removed {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s: plant the fault again: %s has no line %q", f.path, f.file, strings.TrimSpace(line))
			}
		}
	}
}

// Each row of docs/reference/guarantees.md has a planted fault for one of its tests, or is an exception with a reason.
func TestEachGuaranteeHasAPlantedFault(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	faults := make(map[string]bool)
	for _, f := range readFaults(t) {
		faults[f.test] = true
	}
	exceptions := make(map[string]bool)
	for _, row := range pages[faultsPage].table(t, "promise without a fault", "reason") {
		exceptions[row[0]] = true
	}
	rows := pages["docs/reference/guarantees.md"].table(t, "promise")
	for _, row := range rows {
		tests := testForm.FindAllString(strings.Join(row[1:], " "), -1)
		planted := slices.ContainsFunc(tests, func(test string) bool { return faults[test] })
		if planted == exceptions[row[0]] {
			t.Errorf("%q has a fault: %v; is an exception of %s: %v", row[0], planted, faultsPage, exceptions[row[0]])
		}
		delete(exceptions, row[0])
	}
	for promise := range exceptions {
		t.Errorf("%s has the exception %q, which is no promise", faultsPage, promise)
	}
	if len(rows) < 60 {
		t.Errorf("only %d promises were found", len(rows))
	}
}
