// Command shop sells the same stock from several instances at once.
//
//	shop serve        one instance of the order service
//	shop demo         a flash sale, with and without a lock, and its audit
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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

// process is what a command sees of the process that it runs in.
type process struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

var commands = []struct {
	name, what string
	run        func(ctx context.Context, p process, args []string) error
}{
	{"serve", "run one instance of the order service", serve},
	{"demo", "watch a flash sale oversell, and then not", demonstrate},
	{"audit", "compare columns, ledger and orders in the database", audit},
	{"lab", "measure how many orders each strategy takes", experiment},
	{"timers", "look after the timers of a running instance", timers},
	{"cluster", "show the instances and who leads them", clusters},
	{"events", "follow what happens in all instances", follow},
	{"config", "look after the settings that instances share", config},
	{"keys", "make, list and revoke API keys", keys},
	{"fence", "let a lock service that has lost its data sell again", fence},
	{"migrate", "bring the schema up to date", migrate},
	{"healthcheck", "ask a running instance whether it is ready", healthcheck},
	{"version", "print the version of this program", printVersion},
}

// run executes the command that args name. It returns when the command is done
// or ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	p := process{getenv, stdin, stdout, stderr}
	if len(args) == 0 {
		usage(stderr)
		return usageError{errors.New("which command?")}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return nil
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, p, args[1:])
		}
	}
	usage(stderr)
	return usageError{fmt.Errorf("no command %q", args[0])}
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "shop sells the same stock from several instances at once.")
	fmt.Fprintln(w)
	for _, c := range commands {
		fmt.Fprintf(w, "  shop %-12s %s\n", c.name, c.what)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "shop COMMAND --help lists the flags. Each flag has an environment variable: SHOP_ and its name.")
}

// usageError says that the command line is wrong.
type usageError struct{ error }

// exitError ends the process with a code and no further words.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// exitCode prints err in one line, unless everything has been said, and returns
// the code to exit with.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[exitError](err); ok {
		return int(e)
	}
	fmt.Fprintln(stderr, "shop:", strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
}
