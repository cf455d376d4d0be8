package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/template"
)

// Main runs a program until it has ended or is interrupted. The process ends with 1 if it fails.
func Main(program string, run func(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, program+":", err)
		os.Exit(1)
	}
}

// Report is what a program has found, and how that came about.
type Report struct {
	Where     Machine
	Servers   string // with their versions
	LoadAfter string
	Settings  Settings
	Tables    []*Table // those without rows are left out
}

// Write writes the report as text to stdout, and as a document to the file that the settings name. The template of the
// document gets the values, too.
func (r Report) Write(stdout io.Writer, page string, values map[string]any) error {
	r.Tables = slices.DeleteFunc(r.Tables, func(t *Table) bool { return len(t.Rows) == 0 })
	libraries := strings.Join(r.Where.Libraries, ", ")
	fmt.Fprintf(stdout, "%s, %s %s\n%s\n%s\nload average %s before, %s after\n",
		r.Where.CPU, r.Where.System, r.Where.Kernel, r.Servers, libraries, r.Where.LoadBefore, r.LoadAfter)
	for _, t := range r.Tables {
		if err := t.Text(stdout); err != nil {
			return err
		}
	}
	if r.Settings.Markdown == "" {
		return nil
	}
	document, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	all := map[string]any{
		"Date": r.Where.Date, "CPU": r.Where.CPU, "System": r.Where.System, "Kernel": r.Where.Kernel,
		"Servers": r.Servers, "Libraries": libraries, "LoadBefore": r.Where.LoadBefore, "LoadAfter": r.LoadAfter,
		"Rounds": r.Settings.Rounds, "Cell": r.Settings.Cell, "Tables": r.Tables,
	}
	maps.Copy(all, values)
	file, err := os.Create(r.Settings.Markdown)
	if err != nil {
		return err
	}
	return errors.Join(document.Execute(file, all), file.Close())
}
