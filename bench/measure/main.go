package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// Write writes a report as text to stdout, and as a document to the file that the settings name.
func (s Settings) Write(stdout io.Writer, text, markdown func(io.Writer) error) error {
	if err := text(stdout); err != nil || s.Markdown == "" {
		return err
	}
	file, err := os.Create(s.Markdown)
	if err != nil {
		return err
	}
	return errors.Join(markdown(file), file.Close())
}
