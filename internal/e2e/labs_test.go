package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"example.com/shop/internal/lab"
)

// Every lab shows its effect, and its cure works. A machine that is too busy may make a run inconclusive, which is tried once more.
func TestLabsShowTheirEffects(t *testing.T) {
	for _, l := range lab.All() {
		t.Run(l.Name, func(t *testing.T) {
			code, r := runLab(t, l.Name)
			if r.Verdict == lab.Inconclusive {
				t.Logf("inconclusive, and run once more: %s", r.Reason)
				code, r = runLab(t, l.Name)
			}
			if code != 0 || r.Verdict != lab.Shown || r.Number != l.Number || r.Name != l.Name {
				t.Errorf("lab %d, %s: exit code %d, %s, want shown: %s", r.Number, r.Name, code, r.Verdict, r.Reason)
			}
			for _, f := range append(r.Effects, r.Cures...) {
				if !f.OK {
					t.Error("not so: " + f.Text)
				}
			}
			if len(r.Steps) == 0 || len(r.Effects) == 0 || len(r.Cures) == 0 || r.Picture == nil {
				t.Errorf("%d steps, %d effects, %d cures, picture %v; want some of each", len(r.Steps), len(r.Effects), len(r.Cures), r.Picture)
			}
		})
	}
}

// runLab runs a lab at small size, and returns its exit code and result.
func runLab(t *testing.T, name string) (code int, r lab.Result) {
	t.Helper()
	code, out, stderr := call(t, noEnv, "lab", "run", name, "--small", "--json")
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("exit code %d: %v\n%s%s", code, err, out, stderr)
	}
	if rest := strings.TrimSpace(out[d.InputOffset():]); rest != "" {
		t.Errorf("more than one result: %q", rest)
	}
	return code, r
}

func TestLabListNamesAllLabs(t *testing.T) {
	t.Parallel()
	out := shows(t, []string{"lab", "list"})
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(lab.All()) {
		t.Fatalf("%d lines for %d labs:\n%s", len(lines), len(lab.All()), out)
	}
	for i, l := range lab.All() {
		if f := strings.Fields(lines[i]); len(f) < 3 || f[0] != fmt.Sprint(l.Number) || f[1] != l.Name || !strings.HasSuffix(lines[i], l.Question) {
			t.Errorf("line %q; want number, name and question of lab %d, %s", lines[i], l.Number, l.Name)
		}
	}
	var listed []lab.Lab
	if err := json.NewDecoder(bytes.NewBufferString(shows(t, []string{"lab", "list", "--json"}))).Decode(&listed); err != nil || len(listed) != len(lab.All()) {
		t.Errorf("as JSON: %d labs, %v; want %d", len(listed), err, len(lab.All()))
	}
}

func TestLabOfUnknownNameIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"lab", "run", "no-such"}, {"lab", "run", "99"}, {"lab", "run", ""}, {"lab", "run"}} {
		code, out, stderr := call(t, noEnv, args...)
		if code != 2 || out != "" || stderr == "" {
			t.Errorf("%q: exit code %d, want 2 and a reason: %s%s", args, code, out, stderr)
		}
		if len(args) == 3 && !strings.Contains(stderr, lab.All()[0].Name) {
			t.Errorf("%q: the refusal names no lab: %s", args, stderr)
		}
	}
}
