package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The commands of "Run the service" work when they are pasted into two terminals, on another port than 8080.
func TestREADMERunsTheService(t *testing.T) {
	t.Parallel()
	blocks := shellBlocks(section(fileText(t, readme), "Run the service"))
	if len(blocks) < 2 {
		t.Fatalf("%d blocks, want those of two terminals", len(blocks))
	}
	const serve = "go run ./cmd/shop serve"
	if blocks[0] != serve+"\n" {
		t.Fatalf("the first terminal has %q, want %s", blocks[0], serve)
	}
	folder := t.TempDir() // both terminals use shop.db of the folder that they are in
	shop := spawn(t, "--database", "sqlite:"+filepath.Join(folder, "shop.db"))
	script := strings.ReplaceAll(blocks[1], "http://127.0.0.1:8080", shop.url)
	script = strings.ReplaceAll(script, "go run ./cmd/shop ", fmt.Sprintf("%q ", program))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	bash.Dir, bash.Env, bash.Stdin = folder, environment(nil), strings.NewReader(script)
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		`"sku":"ticket","strategy":"conditional","on_hand":100`,
		`"status":"CONFIRMED"`,
		fmt.Sprintf(`"status":%d`, http.StatusConflict),
		"ticket  conditional  100      1         1     99       0         ok",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the commands print no %s:\n%s", want, out)
		}
	}
}

// Each other command of the README is one that a test or make ci runs, or that the head of the compose file lists.
func TestREADMECommands(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // of this package, which run the same command
		"go run ./cmd/shop demo --all":   "TestDemoOfEveryLock",
		"go run ./cmd/shop lab":          "TestControlRoomSellsAndBreaks",
		"go run ./cmd/shop lab run NAME": "TestLabsShowTheirEffects",
		"go run ./cmd/shop serve":        "TestREADMERunsTheService",
	}
	sources, compose, reached := sourceOfTests(t), fileText(t, "../../deployments/docker-compose.yml"), commandsOfCI(t)
	pasted := shellBlocks(section(fileText(t, readme), "Run the service"))[1]
	for _, name := range []string{readme, "../../README.zh-CN.md"} {
		var lines []string
		for _, block := range shellBlocks(fileText(t, name)) {
			if block != pasted {
				lines = append(lines, strings.Split(block, "\n")...)
			}
		}
		for _, inline := range regexp.MustCompile("`((?:go run|go test|make|docker|deployments/)[^`]*)`").FindAllStringSubmatch(fileText(t, name), -1) {
			lines = append(lines, inline[1])
		}
		for _, line := range lines {
			command := strings.TrimSpace(regexp.MustCompile(`\s+#.*`).ReplaceAllString(line, ""))
			switch {
			case command == "" || reached[command]:
			case tests[command] != "" && strings.Contains(sources, "func "+tests[command]+"("):
			case strings.HasPrefix(command, "docker compose ") && regexp.MustCompile(`(?m)^#   `+regexp.QuoteMeta(command)+`(  |$)`).MatchString(compose):
			default:
				t.Errorf("%s: nothing runs %q: add it to make ci, or name the test that does", name, command)
			}
		}
	}
}

const readme = "../../README.md"

// fileText returns a file as text.
func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns what a page says below a heading of the second level.
func section(page, heading string) string {
	_, rest, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// transcriptFrame returns what a page shows of the demo's output besides the figures: the header and the legend.
func transcriptFrame(page string) (lines []string) {
	_, rest, _ := strings.Cut(page, "\n```\nstrategy ")
	block, _, _ := strings.Cut(rest, "\n```")
	for line := range strings.SplitSeq("strategy "+block, "\n") {
		if !regexp.MustCompile(`^\S+ +(exact|oversold) `).MatchString(line) {
			lines = append(lines, line+"\n")
		}
	}
	return lines
}

// shellBlocks returns the blocks of a page that are marked as commands.
func shellBlocks(page string) (blocks []string) {
	for _, b := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, b[1])
	}
	return blocks
}

// commandsOfCI returns what make ci runs: each target that it reaches, as a make command, and the lines of their recipes.
func commandsOfCI(t *testing.T) map[string]bool {
	t.Helper()
	makefile, reached := fileText(t, "../../Makefile"), make(map[string]bool)
	for todo := []string{"ci"}; len(todo) > 0; todo = todo[1:] {
		rule := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(todo[0]) + `:([^#\n]*).*\n((?:\t.*\n)*)`).FindStringSubmatch(makefile)
		if rule == nil || reached["make "+todo[0]] {
			continue
		}
		reached["make "+todo[0]] = true
		todo = append(todo, strings.Fields(rule[1])...)
		for line := range strings.Lines(rule[2]) {
			reached[strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "$(ARGS)"))] = true
			for _, target := range regexp.MustCompile(`\$\(MAKE\)(?: --\S+)*((?: [a-z-]+)+)`).FindAllStringSubmatch(line, -1) {
				todo = append(todo, strings.Fields(target[1])...)
			}
		}
	}
	return reached
}

// sourceOfTests returns the text of all tests of this package.
func sourceOfTests(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		all.WriteString(fileText(t, name))
	}
	return all.String()
}
