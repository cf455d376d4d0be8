package main

import (
	"slices"

	"github.com/spf13/cobra"

	"example.com/shop/internal/cli"
)

// commands returns the root of the command tree.
func commands() cli.Command {
	return cli.Command{
		Name: "shop", Summary: "Sell the same stock from several instances at once",
		Details: cli.VariableRule,
		Examples: []cli.Example{
			{Purpose: "A flash sale by every strategy, with its audit; no server is needed", Line: "shop demo"},
			{Purpose: "The same in the browser: watch instances, and break them", Line: "shop lab"},
			{Purpose: "One instance on a SQLite file", Line: "shop serve"},
			{Purpose: "Audit the ledger of that file", Line: "shop audit"},
		},
		Exits: []cli.Exit{
			{Code: 0, Meaning: "success"},
			{Code: 1, Meaning: "the command failed, or found that an invariant is violated"},
			{Code: 2, Meaning: "the command line or a variable is wrong; nothing was done"},
			{Code: 3, Meaning: "shop demo and shop lab run: nothing was proved"},
		},
		Commands: slices.Concat([]cli.Command{serveCommand(), demoCommand(), labCommand()}, cli.Operators(), []cli.Command{doctorCommand(), versionCommand()}),
	}
}

// program returns the program in a process.
func program(p cli.Process) *cobra.Command {
	root := cli.Program(p, commands())
	root.Version = build()
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version of this program"
	return root
}
