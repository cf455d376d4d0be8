package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script writes the completion script for a shell to a file.
func script(t *testing.T, shell string) (file string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip(err)
	}
	code, out, stderr := call(t, noEnv, "completion", shell)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	file = filepath.Join(t.TempDir(), "completion."+shell)
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// completions are command lines, of which the last word is completed, and some of the words that may follow.
// A word with ! in front must not follow.
var completions = map[string][]string{
	"shop ":                                  {"serve", "demo", "lab", "timers", "completion", "!list", "!--help"},
	"shop se":                                {"serve", "!demo"},
	"shop -":                                 {"--help", "!--listen"},
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
	"shop help timers re":                    {"redrive", "rebuild", "resume", "!list"},
	"shop lab ":                              {"throughput"},
	"shop lab --":                            {"--instances", "!--rounds"},
	"shop lab throughput --ro":               {"--rounds"},
	"shop demo --strategies na":              {"naive"},
	"shop demo --strategies naive,redis,lu":  {"naive,redis,lua", "!naive,redis,local"},
	"shop completion ":                       {"bash", "zsh", "fish"},
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

func TestBashCompletesCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	file := script(t, "bash")
	ask := func(words ...string) []string {
		const program = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shop; ((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"; complete -p shop >/dev/null`
		out, err := exec.CommandContext(t.Context(), "bash", append([]string{"--norc", "-uc", program, "bash", file}, words...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", words, err, out)
		}
		return strings.Fields(string(out))
	}
	for line := range completions {
		completes(t, line, ask(strings.Split(line, " ")...))
	}
	// bash makes a word of its own of the equals sign.
	for want, words := range map[string][]string{"keys": {"shop", "serve", "--auth", "=", "k"}, "none": {"shop", "serve", "--auth", "="}} {
		if got := ask(words...); !slices.Contains(got, want) {
			t.Errorf("%q: want %s, got %q", words, want, got)
		}
	}
}

func TestFishCompletesCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	file := script(t, "fish")
	for line := range completions {
		out, err := exec.CommandContext(t.Context(), "fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, file, line).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", line, err, out)
		}
		var offered []string
		for each := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(each), "\t")
			offered = append(offered, word)
		}
		completes(t, line, offered)
	}
}

// TestZshCompletesCommandsFlagsAndValues with functions in place of those of zsh's line editor, which print what they are offered.
func TestZshCompletesCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	file := script(t, "zsh")
	const program = `
_describe() { local a=${@[-1]}; print -rl -- ${${(P)a}%%:*} }
compadd() { local a=${@[-1]}; print -rl -- $head${^${(P)a}} }
compset() { head=${PREFIX%,*}, ; [[ $PREFIX == *,* ]] || head= }
source $1; shift; words=("$@"); CURRENT=$#; PREFIX=${@[-1]}; head=
_shop || true`
	for line := range completions {
		out, err := exec.CommandContext(t.Context(), "zsh", append([]string{"-fc", program, "zsh", file}, strings.Split(line, " ")...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", line, err, out)
		}
		var offered []string
		for word := range strings.FieldsSeq(string(out)) { // this compadd does not compare with the word that is typed
			if strings.HasPrefix(word, line[strings.LastIndex(line, " ")+1:]) {
				offered = append(offered, word)
			}
		}
		completes(t, line, offered)
	}
}
