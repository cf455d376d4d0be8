package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/lab"
)

// scripted returns labs whose findings are known: each has the name of its outcome.
func scripted() []lab.Lab {
	finds := func(name string, effect, cure bool) lab.Lab {
		return lab.Lab{Name: name, Script: func(_ context.Context, r *lab.Run) {
			r.Effect(effect, "the effect")
			r.Cure(cure, "the cure")
		}}
	}
	return []lab.Lab{
		finds("shown", true, true), finds("no-effect", false, true), finds("no-cure", true, false),
		{Name: "no-finding", Script: func(context.Context, *lab.Run) {}},
		{Name: "no-server", Script: func(_ context.Context, r *lab.Run) {
			r.Effect(false, "the effect")
			r.Defer(func() error { return fmt.Errorf("redis-server: %w", testbed.ErrNotInstalled) })
		}},
	}
}

func TestLabRunExitsWithTheVerdict(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		code    int
		verdict lab.Verdict
	}{
		"shown": {0, lab.Shown}, "no-effect": {1, lab.NotShown}, "no-cure": {1, lab.NotShown},
		"no-finding": {3, lab.Inconclusive}, "no-server": {3, lab.Inconclusive},
	} {
		code, results := runScripted(t, name, scripted())
		if len(results) != 1 {
			t.Fatalf("%s: %d results, want 1", name, len(results))
		}
		if got := results[0]; code != want.code || got.Name != name || got.Verdict != want.verdict {
			t.Errorf("%s: exit code %d, lab %s %s; want %d, %s", name, code, got.Name, got.Verdict, want.code, want.verdict)
		}
	}
}

func TestLabRunAllExitsWithTheWorstVerdict(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]int{
		"shown": 0, "shown no-effect": 1, "no-effect shown": 1, "shown no-server": 3, "no-server shown": 3,
		"no-server no-cure": 1, "no-cure no-server": 1,
	} {
		var labs []lab.Lab
		for name := range strings.FieldsSeq(names) {
			labs = append(labs, scripted()[slices.IndexFunc(scripted(), func(l lab.Lab) bool { return l.Name == name })])
		}
		code, results := runScripted(t, allLabs, labs)
		if code != want || len(results) != len(labs) {
			t.Errorf("%s: exit code %d and %d results, want %d and one for each lab", names, code, len(results), want)
		}
	}
}

func TestLabRunAllEndsWithATable(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	command := cli.Command{Name: "lab", Commands: []cli.Command{runLabCommand(scripted())}}
	cli.Execute(t.Context(), cli.Program(cli.Process{Getenv: noEnv, Stdout: &out, Stderr: &stderr}, command), []string{"run", allLabs})
	table := regexp.MustCompile(`lab +seconds  verdict\nshown +\d+\.\d +shown\nno-effect +\d+\.\d +not shown\nno-cure +\d+\.\d +not shown\nno-finding +\d+\.\d +inconclusive\nno-server +\d+\.\d +inconclusive\n$`)
	if !table.MatchString(out.String()) || stderr.Len() > 0 {
		t.Errorf("%s%s", stderr.String(), out.String())
	}
}

// runScripted runs one of some labs, or all, and returns exit code and results.
func runScripted(t *testing.T, name string, labs []lab.Lab) (code int, results []lab.Result) {
	t.Helper()
	var out, stderr bytes.Buffer
	command := cli.Command{Name: "lab", Commands: []cli.Command{runLabCommand(labs)}}
	code = cli.Execute(t.Context(), cli.Program(cli.Process{Getenv: noEnv, Stdout: &out, Stderr: &stderr}, command), []string{"run", name, "--json"})
	if stderr.Len() > 0 {
		t.Errorf("%s: %s", name, stderr.String())
	}
	for d := json.NewDecoder(&out); d.More(); {
		var r lab.Result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return code, results
}
