package main

import (
	"cmp"
	"io"
	"os"

	"golang.org/x/term"

	"example.com/shop/internal/app"
	"example.com/shop/internal/cli"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/stock"
)

// storesVar defines the flags of a command that starts instances: which stores they have.
func storesVar(f *cli.Flags, s *fleet.StoresConfig) {
	f.Group("Stores")
	f.BoolVar(&s.All, "all", false, "start a real server of each kind that is installed and not named: MariaDB, Redis, five more for Redlock, ZooKeeper, etcd")
	f.StringVar(&s.Database, "database", "", "`URL`: use the database at sqlite:FILE, mysql://USER:PASSWORD@HOST:3306/DB or postgres://USER:PASSWORD@HOST/DB; of several hosts, HOST:PORT,HOST:PORT, the one that accepts writes")
	f.DefaultText("database", "a temporary SQLite file")
	f.StringVar(&s.Redis, "redis", "", "`URL`: use the Redis at redis://HOST:6379/0")
	f.DefaultText("redis", "embedded in the program")
	f.StringVar(&s.Redlock, "redlock", "", "`URL,...`: use these independent Redis servers for redlock; an odd number from 3")
	f.StringVar(&s.ZooKeeper, "zookeeper", "", "`HOST:2181,...`: use this ZooKeeper for its strategies")
	f.StringVar(&s.Etcd, "etcd", "", "`HOST:2379,...`: use this etcd for its strategies")
}

// validStores returns what is wrong with the form of these flags.
func validStores(s fleet.StoresConfig) error {
	return app.Config{
		Database: cmp.Or(s.Database, app.DefaultDatabase), Redis: s.Redis, Redlock: s.Redlock, ZooKeeper: s.ZooKeeper, Etcd: s.Etcd,
	}.ValidateStores()
}

// strategiesVar defines --strategies.
func strategiesVar(f *cli.Flags, names *[]string) {
	f.ListVar(names, "strategies", stock.NewStrategies(stock.Lockers{}).Names(), "`NAMES`: sell by these strategies, separated by commas")
	f.DefaultText("strategies", "all whose stores are available")
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
