// Command shop sells the same stock from several instances at once.
//
//	shop serve        one instance of the order service
//	shop demo         a flash sale, with and without a lock, and its audit
//	shop lab          the control room: instances that a person watches and breaks
//	shop audit        compare columns, ledger and orders in the database
//	shop timers       manage the timers of running instances
//	shop cluster      show the instances and their leader
//	shop events       show the events of all instances
//	shop config       show and change the settings that instances share
//	shop keys         create, list and revoke API keys
//	shop fence        repair SKUs whose lock service has lost its data
//	shop migrate      bring the schema up to date
//	shop doctor       check whether the stores would take an order
//	shop healthcheck  ask a running instance whether it is ready
//	shop help         show the help of a command
//	shop completion   print a script that completes commands and flags
//	shop version      print the version of this program
//
// docs/reference/cli.md lists all flags and exit codes, docs/reference/configuration.md all environment variables.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"example.com/shop/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes the command that args name, and returns the exit code. It returns when the command is done
// or ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Execute(ctx, program(cli.Process{Getenv: getenv, Stdin: stdin, Stdout: stdout, Stderr: stderr}), args)
}
