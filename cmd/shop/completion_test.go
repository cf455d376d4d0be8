package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// completions are command lines, of which the last word is completed, and some of the words that may follow.
// A word with ! in front must not follow.
var completions = map[string][]string{
	"shop ":                                  {"serve", "demo", "lab", "timers", "completion", "!list", "!--help"},
	"shop se":                                {"serve", "!demo"},
	"shop -":                                 {"--help", "--version", "!--listen"},
	"shop serve --":                          {"--listen", "--order-ttl", "--auth", "--help", "!--stock"},
	"shop serve --or":                        {"--order-ttl", "!--listen"},
	"shop serve --auth ":                     {"keys", "none", "!--listen"},
	"shop serve --auth k":                    {"keys", "!none"},
	"shop serve --log-level d":               {"debug", "!info"},
	"shop serve --listen ":                   {"!keys", "!serve", "!--auth"},
	"shop serve --auth keys --lis":           {"--listen"},
	"shop timers ":                           {"list", "redrive", "!members"},
	"shop timers list --":                    {"--kind", "--state", "!--listen"},
	"shop timers list --state ":              {"open", "dead"},
	"shop help ":                             {"serve", "timers"},
	"shop help timers re":                    {"redrive", "resume", "!list"},
	"shop lab ":                              {"list", "run"},
	"shop lab --":                            {"--instances", "!--small"},
	"shop lab run heat --sm":                 {"--small"},
	"shop demo --strategies na":              {"naive"},
	"shop demo --strategies naive,redis,lu":  {"naive,redis,lua", "!naive,redis,local"},
	"shop completion ":                       {"bash", "zsh", "fish", "powershell"},
	"shop config set --url http://a:1 --ver": {"--version"},
}

// completes fails the test unless the words that a shell offers are as they should be.
func completes(t *testing.T, line string, offered []string) {
	t.Helper()
	for _, want := range completions[line] {
		word, absent := strings.CutPrefix(want, "!")
		if slices.Contains(offered, word) == absent {
			t.Errorf("%q: want %s, got %q", line, want, offered)
		}
	}
}

// TestShellsGetCommandsFlagsAndValues: the scripts of all shells run shop __complete with the words of the line.
func TestShellsGetCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	for line := range completions {
		code, out, stderr := call(t, noEnv, append([]string{"__complete"}, strings.Split(line, " ")[1:]...)...)
		if code != 0 {
			t.Errorf("%q: exit code %d: %s", line, code, stderr)
		}
		var offered []string
		for each := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSpace(each), "\t")
			offered = append(offered, word)
		}
		completes(t, line, offered)
	}
}

// TestCompletionScriptsAreReadByTheirShells that are installed.
func TestCompletionScriptsAreReadByTheirShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, script, stderr := call(t, noEnv, "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(script, "__complete") {
			t.Errorf("%s: exit code %d: %s", shell, code, stderr)
		}
		path, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue
		}
		read := exec.CommandContext(t.Context(), path, "-n")
		read.Stdin = strings.NewReader(script)
		if out, err := read.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}
