package main

import (
	"context"
	"errors"
	"os"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/show/controlroom"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/show/lab"
)

// labCommand opens the control room. Its subcommands are experiments.
func labCommand() cli.Command {
	return cli.Command{
		Name: "lab", Summary: "Watch instances sell in the browser, and break them",
		Details: "The command starts instances and prints the address of a page that shows and controls them. Ctrl-C ends the page and all instances.",
		Examples: []cli.Example{
			{Purpose: "Three instances on an embedded Redis and SQLite", Line: "shop lab"},
			{Purpose: "Five instances, with real servers that are installed here", Line: "shop lab --instances 5 --all"},
			{Purpose: "A fixed address, and a Redis that runs already", Line: "shop lab --listen 127.0.0.1:8090 --redis redis://127.0.0.1:6379/0"},
		},
		Commands: []cli.Command{listLabsCommand(), runLabCommand(lab.All()), newLabCommand(), workerCommand()},
		Define: func(f *cli.Flags) cli.Run {
			c := &controlroom.Config{Stores: fleet.StoresConfig{Embed: true}}
			f.StringVar(&c.Listen, "listen", "127.0.0.1:0", "`HOST:PORT`: serve the page at this loopback address; port 0 takes a free one")
			f.IntVar(&c.Instances, "instances", 3, "`PROCESSES`: start this many instances, 1 to 32")
			storesVar(f, &c.Stores)
			return func(ctx context.Context, _ []string) error { return controlRoom(ctx, f, *c) }
		},
	}
}

// controlRoom runs instances and a page that shows them, until ctx ends.
func controlRoom(ctx context.Context, f *cli.Flags, c controlroom.Config) (err error) {
	c.Out = f.Stdout
	if err := errors.Join(validStores(c.Stores), c.Validate()); err != nil {
		return cli.UsageError{Err: err}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	return controlroom.Run(ctx, c)
}
