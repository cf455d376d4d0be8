package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"example.com/shop/internal/cli"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md and docs/reference/configuration.md")

const referenceFolder = "../../docs/reference/"

// docs/reference/cli.md and configuration.md show the command tree as it is. `make gen` writes them.
func TestReferencePages(t *testing.T) {
	t.Parallel()
	for name, page := range map[string][]byte{"cli.md": cliPage(), "configuration.md": configurationPage(t)} {
		if *update {
			if err := os.MkdirAll(referenceFolder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(referenceFolder+name, page, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		is, err := os.ReadFile(referenceFolder + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(is, page) {
			t.Errorf("docs/reference/%s is stale: make gen", name)
		}
	}
}

// cliPage returns the reference of the commands.
func cliPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Command line\n\n`make gen` writes this page from the command tree. `shop help COMMAND` shows the same in a terminal.\n" +
		"[configuration.md](configuration.md) lists the environment variables.\n")
	for _, p := range pages() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", p.CommandPath(), p.Short, strings.Join(cli.Usage(p), "\n"))
		if p.Long != "" && !ofCobra(p) {
			fmt.Fprintf(&b, "\n%s\n", p.Long)
		}
		if p.HasSubCommands() {
			b.WriteString("\n| command | what it does |\n|---|---|\n")
			for _, each := range below(p)[1:] {
				if each.Parent() != p {
					continue
				}
				name := each.CommandPath()
				fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), each.Short)
			}
		}
		flagTables(&b, p)
		if p.Example != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimPrefix(strings.ReplaceAll(p.Example, "\n  ", "\n"), "  "))
		}
		if codes := p.Annotations[cli.ExitCodes]; codes != "" {
			b.WriteString("\n| exit code | meaning |\n|---|---|\n")
			for line := range strings.SplitSeq(codes, "\n") {
				fmt.Fprintf(&b, "| %s |\n", strings.Replace(line, "  ", " | ", 1))
			}
		}
	}
	return b.Bytes()
}

// flagTables writes the flags of a command.
func flagTables(b *bytes.Buffer, p *cobra.Command) {
	group := "-"
	for _, fl := range cli.FlagsOf(p) {
		if fl.Heading != group {
			group = fl.Heading
			b.WriteString("\n")
			if group != "" {
				fmt.Fprintf(b, "%s:\n\n", group)
			}
			b.WriteString("| flag | meaning | default | variable |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", head(fl), sentence(fl), defaultOf(fl), code(fl.Variable))
	}
}

// head returns the flag with the placeholder of its value.
func head(fl cli.Flag) string { return strings.TrimSpace("--" + fl.Name + " " + fl.Value) }

// sentence returns the usage as a sentence, with the values that the flag takes.
func sentence(fl cli.Flag) string {
	text := strings.ToUpper(fl.Usage[:1]) + fl.Usage[1:]
	if len(fl.Choices) > 0 {
		some := ". One of "
		if fl.List {
			some = ". Any of "
		}
		text += some + cli.Alternatives(fl.Choices)
	}
	return text + "."
}

// defaultOf returns the default of a flag for a table.
func defaultOf(fl cli.Flag) string {
	switch {
	case fl.Flag.Value.Type() == "bool":
		return map[string]string{"true": "on", "false": "off"}[fl.DefValue]
	case fl.DefValue == "":
		return "none"
	case strings.Contains(fl.DefValue, " ") || fl.DefValue == "all":
		return fl.DefValue
	}
	return code(strings.TrimSuffix(fl.DefValue, "m0s") + map[bool]string{true: "m"}[strings.HasSuffix(fl.DefValue, "m0s")])
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// composeVariables are those that deployments/docker-compose.yml reads from the environment of docker compose.
var composeVariables = []cli.Variable{
	{Name: "SHOP_LOGS_ENDPOINT", Meaning: "Have the instances send their logs to this OTLP endpoint; default none, deployments/observe.env has that of the stack"},
	{Name: "SHOP_LOGS_PORT", Meaning: "Publish VictoriaLogs at this port of 127.0.0.1; default 9428"},
	{Name: "SHOP_METRICS_PORT", Meaning: "Publish VictoriaMetrics at this port of 127.0.0.1; default 8428"},
	{Name: "SHOP_PORT", Meaning: "Publish the balancer at this port of 127.0.0.1; default 8080"},
	{Name: "SHOP_VERSION", Meaning: "Build the images with this version; default the version of the Go module"},
	{Name: "SHOP_DATABASE_PASSWORD", Meaning: "Use this password of the database user shop; default shop"},
	{Name: "SHOP_DATABASE_ROOT_PASSWORD", Meaning: "Use this password of the database user root; default root"},
	{Name: "SHOP_REDLOCK", Meaning: "Give the instances these servers of Redlock; default none, deployments/locks.env has those of the stack"},
	{Name: "SHOP_ZOOKEEPER", Meaning: "The same for ZooKeeper"},
	{Name: "SHOP_ETCD", Meaning: "The same for etcd"},
	{Name: "OUT", Meaning: "Write the reports of the load test to this folder of its container; default none"},
	{Name: "GOPROXY", Meaning: "Download Go modules from this proxy while images are built"},
}

// configurationPage returns the reference of flags and variables.
func configurationPage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Configuration\n\n`make gen` writes this page from the command tree. [cli.md](cli.md) lists all flags of all commands.\n\n" +
		cli.VariableRule + "\n\nA switch without a value is on with the value `true`. If a variable is empty, the default applies.\n\n## Flags of shop serve\n")
	var connections, flagless rows
	for _, p := range pages() {
		for line := range strings.SplitSeq(p.Annotations[cli.Environment], "\n") {
			if variable, meaning, ok := strings.Cut(line, "  "); ok {
				flagless.add(fmt.Sprintf("| %s | %s. |", code(strings.ReplaceAll(variable, ", ", "`, `")), meaning), p.CommandPath())
			}
		}
		if p.CommandPath() == "shop serve" {
			serveTables(&b, p)
			continue
		}
		for _, fl := range cli.FlagsOf(p) {
			if fl.Variable != "" {
				connections.add(fmt.Sprintf("| `%s` | `--%s` | %s |", fl.Variable, fl.Name, defaultOf(fl)), p.CommandPath())
			}
		}
	}
	slices.SortStableFunc(connections, func(a, b row) int { return strings.Compare(a.cells, b.cells) })
	b.WriteString("\n## Variables of the other commands\n\n| variable | flag | default | commands |\n|---|---|---|---|\n" + connections.String())
	b.WriteString("\n## Variables without a flag\n\n| variable | meaning | commands |\n|---|---|---|\n" + flagless.String())
	b.WriteString("\n## Variables of docker compose\n\n[deployments/docker-compose.yml](../../deployments/docker-compose.yml) reads them.\n\n| variable | meaning |\n|---|---|\n")
	for _, v := range composeVariables {
		fmt.Fprintf(&b, "| `%s` | %s. |\n", v.Name, v.Meaning)
	}
	return b.Bytes()
}

// rows are rows of a table, each with the commands that it is about.
type (
	rows []row
	row  struct {
		cells    string
		commands []string
	}
)

// add adds a command to the row with these cells.
func (r *rows) add(cells, command string) {
	i := slices.IndexFunc(*r, func(each row) bool { return each.cells == cells })
	if i < 0 {
		i = len(*r)
		*r = append(*r, row{cells: cells})
	}
	(*r)[i].commands = append((*r)[i].commands, "`"+command+"`")
}

// String returns the rows as text.
func (r rows) String() string {
	var b strings.Builder
	for _, each := range r {
		fmt.Fprintf(&b, "%s %s |\n", each.cells, strings.Join(each.commands, ", "))
	}
	return b.String()
}

// serveTables writes the flags of an instance, by group.
func serveTables(b *bytes.Buffer, p *cobra.Command) {
	group := ""
	for _, fl := range cli.FlagsOf(p) {
		if fl.Heading != group {
			group = fl.Heading
			fmt.Fprintf(b, "\n### %s\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n", group)
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s |\n", head(fl), fl.Variable, defaultOf(fl), sentence(fl))
	}
}

// TestVariablesOfComposeAreListed: those that the file interpolates.
func TestVariablesOfComposeAreListed(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../deployments/docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var listed, read []string
	for _, v := range composeVariables {
		listed = append(listed, v.Name)
	}
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(file), -1) {
		read = append(read, m[1])
	}
	slices.Sort(listed)
	slices.Sort(read)
	if read = slices.Compact(read); !slices.Equal(listed, read) {
		t.Errorf("the file reads %q, listed are %q", read, listed)
	}
}

// TestVariablesOfDeploymentsAreThoseOfFlags: containers of Compose and Kubernetes get no others.
func TestVariablesOfDeploymentsAreThoseOfFlags(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range everyCommand() {
		for _, fl := range cli.FlagsOf(p) {
			known[fl.Variable] = true
		}
	}
	set := map[string]int{}
	err := filepath.WalkDir("../../deployments", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)(?:^\s+|name: )(SHOP_[A-Z_]+)\b`).FindAllStringSubmatch(string(text), -1) {
			set[path]++
			if !known[m[1]] {
				t.Errorf("%s: no flag has the variable %s", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../deployments/docker-compose.yml", "../../deployments/kubernetes/base/deployment.yaml"} {
		if set[path] < 5 {
			t.Errorf("only %d variables of instances were found in %s", set[path], path)
		}
	}
}
