package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"example.com/shop/internal/demo"
)

// demonstrate holds a flash sale by every strategy and exits with its verdict.
func demonstrate(ctx context.Context, p process, args []string) error {
	c := demo.Config{Out: p.stdout, Terminal: isTerminal(p.stdout)}
	var strategies string
	with := p
	with.getenv = func(name string) string {
		if name == variable("url") {
			return "" // where other commands ask, nobody has been told to sell
		}
		return p.getenv(name)
	}
	f := newFlags(with, "demo", "watch a flash sale oversell, and then not; exit 1 if a lock failed, 3 if nothing was proved")
	f.StringVar(&strategies, "strategies", "", "comma-separated `NAMES` of the strategies to sell by (default all whose stores there are)")
	f.IntVar(&c.Stock, "stock", 100, "units on sale in each arm")
	f.IntVar(&c.Attempts, "attempts", 0, "attempts to buy in each arm, at least twice the stock (default 8 times the stock)")
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
	if err := f.parse(args); err != nil {
		return err
	}
	set := given(f)
	if set["stock"] && c.Stock == 0 || set["attempts"] && c.Attempts == 0 || set["instances"] && c.Instances == 0 {
		return usageError{errors.New("demo: --stock, --attempts and --instances must be positive")}
	}
	if strategies != "" {
		c.Strategies = strings.Split(strategies, ",")
	}
	if c.URL != "" {
		url, err := validBase("demo", c.URL)
		if err != nil {
			return err
		}
		c.URL = url
	}
	err := errors.Join(c.Validate(), validRedis(c.Redis), validRedlock(c.Redlock), validServers("zookeeper", c.ZooKeeper), validServers("etcd", c.Etcd))
	if c.Database != "" {
		err = errors.Join(err, validDatabase(c.Database))
	}
	if err != nil {
		return usageError{errors.New("demo: " + strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	r, err := demo.Run(ctx, c)
	switch {
	case err != nil:
		return err
	case r.Verdict == demo.Failed:
		return exitError(1)
	case r.Verdict == demo.Inconclusive:
		return exitError(3)
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
