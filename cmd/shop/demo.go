package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"example.com/shop/internal/app"
	"example.com/shop/internal/cli"
	"example.com/shop/internal/demo"
)

// demonstrate holds a flash sale by every strategy and exits with its verdict.
func demonstrate(ctx context.Context, f *cli.Flags, args []string) error {
	c := demo.Config{Out: f.Stdout, Terminal: isTerminal(f.Stdout)}
	var strategies string
	getenv := f.Getenv
	f.Getenv = func(name string) string {
		if name == cli.Variable("url") {
			return "" // where other commands ask, nobody has been told to sell
		}
		return getenv(name)
	}
	f.StringVar(&strategies, "strategies", "", "comma-separated `NAMES` of the strategies to sell by (default all whose stores there are)")
	f.IntVar(&c.Stock, "stock", 100, "units on sale in each variant")
	f.IntVar(&c.Attempts, "attempts", 0, "attempts to buy in each variant, at least twice the stock (default 8 times the stock)")
	f.IntVar(&c.Instances, "instances", 3, "processes that sell")
	f.StringVar(&c.Redis, "redis", "", "redis://HOST:6379/0 (default: embedded)")
	f.StringVar(&c.Database, "database", "", "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB (default: a temporary SQLite file)")
	f.StringVar(&c.Redlock, "redlock", "", "redis://HOST:6379/0,... of three or more servers (default none)")
	f.StringVar(&c.ZooKeeper, "zookeeper", "", "HOST:2181,... (default none)")
	f.StringVar(&c.Etcd, "etcd", "", "HOST:2379,... (default none)")
	f.BoolVar(&c.All, "all", false, "start a real server of each kind that is installed and not named: MariaDB, Redis, five more for redlock, ZooKeeper, etcd")
	f.StringVar(&c.URL, "url", "", "base `URL` of a service to sell at that runs already on --database")
	f.BoolVar(&c.Keep, "keep", false, "leave the instances up until Ctrl-C")
	f.BoolVar(&c.JSON, "json", false, "print nothing but the result as JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	set := f.Given()
	if set["stock"] && c.Stock == 0 || set["attempts"] && c.Attempts == 0 || set["instances"] && c.Instances == 0 {
		return cli.UsageError{Err: errors.New("demo: --stock, --attempts and --instances must be positive")}
	}
	if strategies != "" {
		c.Strategies = strings.Split(strategies, ",")
	}
	if c.URL != "" {
		url, err := cli.ValidBase("demo", c.URL)
		if err != nil {
			return err
		}
		c.URL = url
	}
	err := errors.Join(c.Validate(), app.ValidRedis(c.Redis), app.ValidRedlock(c.Redlock), app.ValidServers("zookeeper", c.ZooKeeper), app.ValidServers("etcd", c.Etcd))
	if c.Database != "" {
		err = errors.Join(err, app.ValidDatabase(c.Database))
	}
	if err != nil {
		return cli.UsageError{Err: errors.New("demo: " + strings.ReplaceAll(err.Error(), "\n", "; "))}
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

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
