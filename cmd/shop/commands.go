package main

import (
	"slices"

	"example.com/shop/internal/cli"
)

// commands returns the root of the command tree.
func commands() *cli.Command {
	root := &cli.Command{
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
		Commands: slices.Concat([]cli.Command{serveCommand(), demoCommand(), labCommand()}, cli.Operators()),
	}
	root.Commands = append(root.Commands, cli.Help(root), cli.Completion(root), versionCommand())
	return root
}
