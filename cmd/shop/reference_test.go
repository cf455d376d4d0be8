package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	for _, p := range commands().Pages() {
		c := p.Command()
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", p.Name(), c.Summary, strings.Join(p.Usage(), "\n"))
		if c.Details != "" {
			fmt.Fprintf(&b, "\n%s\n", c.Details)
		}
		if len(c.Commands) > 0 {
			b.WriteString("\n| command | what it does |\n|---|---|\n")
			for _, each := range c.Commands {
				name := p.Name() + " " + each.Name
				fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), each.Summary)
			}
		}
		flagTables(&b, p)
		b.WriteString("\n```\n")
		for i, e := range p.Examples() {
			fmt.Fprintf(&b, "%s# %s\n%s\n", map[bool]string{true: "\n"}[i > 0], e.Purpose, e.Line)
		}
		b.WriteString("```\n")
		if len(c.Exits) > 0 {
			b.WriteString("\n| exit code | meaning |\n|---|---|\n")
			for _, e := range c.Exits {
				fmt.Fprintf(&b, "| %d | %s |\n", e.Code, e.Meaning)
			}
		}
	}
	return b.Bytes()
}

// flagTables writes the flags of a command.
func flagTables(b *bytes.Buffer, p cli.Page) {
	group := "-"
	for _, fl := range p.Flags() {
		if fl.Group != group {
			group = fl.Group
			b.WriteString("\n")
			if group != "" {
				fmt.Fprintf(b, "%s:\n\n", group)
			}
			b.WriteString("| flag | meaning | default | variable |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", fl.Head(), fl.Sentence(), defaultOf(fl), code(fl.Variable))
	}
}

// defaultOf returns the default of a flag for a table.
func defaultOf(fl *cli.Flag) string {
	switch {
	case fl.Default == "":
		return "off"
	case strings.Contains(fl.Default, " ") || fl.Default == "none" || fl.Default == "all":
		return fl.Default
	}
	return code(fl.Default)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// composeVariables are those that deployments/docker-compose.yml reads from the environment of docker compose.
var composeVariables = []cli.Variable{
	{Name: "SHOP_PORT", Meaning: "Publish the balancer at this port of 127.0.0.1; default 8080"},
	{Name: "SHOP_VERSION", Meaning: "Build the images with this version; default the version of the Go module"},
	{Name: "SHOP_DATABASE_PASSWORD", Meaning: "Use this password of the database user shop; default shop"},
	{Name: "SHOP_DATABASE_ROOT_PASSWORD", Meaning: "Use this password of the database user root; default root"},
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
	for _, p := range commands().Pages() {
		for _, v := range p.Command().Env {
			flagless.add(fmt.Sprintf("| %s | %s. |", code(strings.ReplaceAll(v.Name, ", ", "`, `")), v.Meaning), p.Name())
		}
		if p.Name() == "shop serve" {
			serveTables(&b, p)
			continue
		}
		for _, fl := range p.Flags() {
			if fl.Variable != "" {
				connections.add(fmt.Sprintf("| `%s` | `--%s` | %s |", fl.Variable, fl.Name, defaultOf(fl)), p.Name())
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
func serveTables(b *bytes.Buffer, p cli.Page) {
	group := ""
	for _, fl := range p.Flags() {
		if fl.Group != group {
			group = fl.Group
			fmt.Fprintf(b, "\n### %s\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n", group)
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s |\n", fl.Head(), fl.Variable, defaultOf(fl), fl.Sentence())
	}
}

// TestVariablesOfComposeAreListed: those that the file interpolates, and instances get only variables of flags.
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
	known := map[string]bool{}
	for _, p := range everyCommand() {
		for _, fl := range p.Flags() {
			known[fl.Variable] = true
		}
	}
	set := regexp.MustCompile(`(?m)^\s+(SHOP_[A-Z_]+):`).FindAllStringSubmatch(string(file), -1)
	for _, m := range set {
		if !known[m[1]] {
			t.Errorf("no flag has the variable %s", m[1])
		}
	}
	if len(set) < 5 {
		t.Errorf("only %d variables of instances were found", len(set))
	}
}
