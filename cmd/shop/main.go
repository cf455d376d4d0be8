// Command shop sells the same stock from several instances at once.
//
//	shop serve        one instance of the order service
//	shop demo         a flash sale, with and without a lock, and its audit
//	shop lab          the control room: instances that a person watches and breaks
//	shop audit        compare columns, ledger and orders in the database
//	shop timers       look after the timers of a running instance
//	shop cluster      show the instances and who leads them
//	shop events       follow what happens in all instances
//	shop config       look after the settings that instances share
//	shop keys         make, list and revoke API keys
//	shop fence        let a lock service that has lost its data sell again
//	shop migrate      bring the schema up to date
//	shop healthcheck  ask a running instance whether it is ready
//	shop version      print the version of this program
//
// Every flag has an environment variable: SHOP_ and its name in capitals. The
// exit code is 0 when all is well, 1 when something failed or the books are
// wrong, 2 for a bad flag, and 3 when a demo proved nothing.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
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

var commands = cli.Group{
	What: "shop sells the same stock from several instances at once.",
	Commands: slices.Concat([]cli.Command{
		{Name: "serve", What: "run one instance of the order service", Run: serve},
		{Name: "demo", What: "watch a flash sale oversell, and then not", More: "; exit 1 if a lock failed, 3 if nothing was proved", Run: demonstrate},
		{Name: "lab", What: "watch instances sell and break them; measure the strategies", Run: experiment},
	}, cli.Operators(), []cli.Command{
		{Name: "version", What: "print the version of this program", Run: printVersion},
	}),
	Note: "shop COMMAND --help lists the flags. Each flag has an environment variable: SHOP_ and its name.",
}

// run executes the command that args name, and returns the exit code. It returns when the command is done
// or ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	f := cli.NewFlags(cli.Process{Getenv: getenv, Stdin: stdin, Stdout: stdout, Stderr: stderr}, "", "")
	return cli.ExitCode(commands.Run(ctx, f, args), stderr)
}
