package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/show/demo"
	"example.com/shop/internal/show/fleet"
)

// demoCommand holds a flash sale by every strategy and exits with its verdict.
func demoCommand() cli.Command {
	return cli.Command{
		Name: "demo", Summary: "Run a flash sale by every strategy, and audit what was sold",
		Details: "The command starts instances, sells the same stock by each strategy, and lets unpaid orders expire while an instance is killed. " +
			"Without flags, no server is needed.",
		Examples: []cli.Example{
			{Purpose: "Every strategy that needs no server", Line: "shop demo"},
			{Purpose: "Three strategies, more instances, more stock", Line: "shop demo --strategies naive,redis,redis-cohort --instances 5 --stock 200"},
			{Purpose: "Every strategy, on real servers that are installed here", Line: "shop demo --all"},
			{Purpose: "A service that runs already", Line: "shop demo --url http://127.0.0.1:8080 --database sqlite:shop.db"},
		},
		Exits: []cli.Exit{
			{Code: 0, Meaning: "proved: the unsafe strategies oversold, and every other one was exact"},
			{Code: 1, Meaning: "failed: a strategy that must be exact was not, or unpaid orders did not release their units once and on time"},
			{Code: 3, Meaning: "inconclusive: the load was too weak, or the instances did not respond"},
		},
		Define: func(f *cli.Flags) cli.Run {
			c := &demo.Config{}
			s := &fleet.StoresConfig{}
			f.Group("Sale")
			strategiesVar(f, &c.Strategies)
			f.IntVar(&c.Stock, "stock", 100, "`UNITS`: put this many units on sale in each variant, 1 to 100000")
			f.IntVar(&c.Attempts, "attempts", 0, "`ORDERS`: send this many orders in each variant, at least twice the stock")
			f.DefaultText("attempts", "8 times the stock")
			f.IntVar(&c.Instances, "instances", 3, "`PROCESSES`: start this many instances, 1 to 32")
			f.URLVar(&c.URL, "url", "", "`URL`: sell at the service with this base URL, which runs on --database, instead of starting instances")
			f.WithoutVariable("url") // the variable is for commands that read; a sale must be asked for
			storesVar(f, s)
			f.Group("Output")
			f.BoolVar(&c.Keep, "keep", false, "keep the instances up until Ctrl-C")
			f.BoolVar(&c.JSON, "json", false, "print nothing but the result as JSON")
			return func(ctx context.Context, _ []string) error { return demonstrate(ctx, f, *c, *s) }
		},
	}
}

func demonstrate(ctx context.Context, f *cli.Flags, c demo.Config, s fleet.StoresConfig) (err error) {
	c.Out, c.Terminal = f.Stdout, isTerminal(f.Stdout)
	c.All, c.Database, c.Redis, c.Redlock, c.ZooKeeper, c.Etcd = s.All, s.Database, s.Redis, s.Redlock, s.ZooKeeper, s.Etcd
	for i, value := range []int{c.Stock, c.Attempts, c.Instances} {
		if name := []string{"stock", "attempts", "instances"}[i]; value == 0 && f.Given(name) { // in a Config, 0 is the default
			return cli.UsageError{Err: fmt.Errorf("--%s 0: want 1 or more", name)}
		}
	}
	if err := errors.Join(c.Validate(), validStores(s)); err != nil {
		return cli.UsageError{Err: err}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	r, err := demo.Run(ctx, c)
	switch {
	case err != nil:
		return err
	case r.Verdict == demo.Failed:
		return cli.ExitError(1)
	case r.Verdict == demo.Inconclusive:
		return cli.ExitError(3)
	}
	return nil
}
