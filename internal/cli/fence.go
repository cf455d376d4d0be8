package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/zookeeper"
)

const (
	fenceTimeout = time.Minute
	fenceLease   = 2 * time.Second
	levelsPage   = 1000 // how many SKUs are read at once
)

// Fence lets a lock service that has lost its data sell again.
func Fence(ctx context.Context, f *Flags, args []string) error {
	call := &fenceCall{}
	command := func(name, args, what string, run func(context.Context, *Flags, []string) error) Command {
		return Command{Name: name, Args: args, What: what, Run: func(ctx context.Context, f *Flags, args []string) error {
			f.Database(&call.database)
			err := run(ctx, f, args)
			if errors.Is(err, sqlstore.ErrNoSchema) {
				return fmt.Errorf("fence %s: the schema of %s is older than this program, and shop migrate brings it up to date", name, call.address)
			}
			return err
		}}
	}
	return Group{
		What: "shop fence repairs SKUs whose lock service has lost its data, so that the database refuses its fencing tokens.",
		Commands: []Command{
			command("list", "", "show the SKUs with fencing tokens, and which of them need a rebase; --zookeeper or --etcd names a service to query", call.list),
			command("rebase", "SKU", "accept the next lease of a SKU, however low its fencing token: for a lock service that has lost its data", call.rebase),
		},
		Note: "shop fence COMMAND --help lists the flags.",
	}.Run(ctx, f, args)
}

// fenceCall is one command with its flags and arguments.
type fenceCall struct {
	database, zookeeper, zookeeperAuth, etcd string // as the flags have them

	address string // of the database, once it is open
}

// rebase raises the token offset of one SKU above the last accepted fencing token.
func (c *fenceCall) rebase(ctx context.Context, f *Flags, args []string) (err error) {
	rest, err := f.ParseWith(args, 0, len(args))
	switch {
	case err != nil:
		return err
	case len(rest) != 1:
		return UsageError{errors.New("fence rebase: want one SKU")}
	case !stock.ValidSKU(rest[0]):
		return UsageError{fmt.Errorf("fence rebase: %q cannot be a SKU", rest[0])}
	}
	store, err := openDatabase(ctx, operator(f.Process), c.database, sqlstore.AccessChange)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	c.address = store.Address()
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	before, err := store.Level(ctx, rest[0])
	if err != nil {
		return fmt.Errorf("fence rebase: %w", err)
	}
	after, err := stock.NewService(store, stock.NewStrategies(stock.Lockers{}), nil).Rebase(ctx, rest[0])
	if err != nil {
		return fmt.Errorf("fence rebase: %w", err)
	}
	_, err = fmt.Fprintf(f.Stdout, "%s (%s): fences count from %d, not from %d; noted in the ledger\n", after.SKU, after.Strategy, after.Base, before.Base)
	return err
}

// operator is the name of the operator in the ledger, at most 64 characters.
func operator(p Process) string {
	name := cmp.Or(p.Getenv("USER"), "fence") + "@" + app.Hostname()
	return strings.ToValidUTF8(name[:min(len(name), 64)], "")
}

// list shows the last accepted fencing tokens alongside the tokens that the services would issue now.
func (c *fenceCall) list(ctx context.Context, f *Flags, args []string) (err error) {
	f.StringVar(&c.zookeeper, "zookeeper", "", "HOST:2181,... of the strategy zookeeper, to ask for its fence")
	f.StringVar(&c.zookeeperAuth, "zookeeper-auth", "", "`USER:PASSWORD` for --zookeeper, as the instances have it")
	f.StringVar(&c.etcd, "etcd", "", "HOST:2379,... of the strategy etcd, to ask for its fence")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := errors.Join(app.ValidServers("zookeeper", c.zookeeper), app.ValidZooKeeperAuth(c.zookeeperAuth, c.zookeeper), app.ValidServers("etcd", c.etcd)); err != nil {
		return UsageError{err}
	}
	store, err := openDatabase(ctx, "fence", c.database, sqlstore.AccessRead)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	c.address = store.Address()
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	present, silent := c.present(ctx)
	strategies := stock.NewStrategies(stock.Lockers{})
	w := tabwriter.NewWriter(f.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKU\tSTRATEGY\tACCEPTED\tBASE\tSERVICE\tREBASE")
	for after := ""; ; {
		levels, err := store.Levels(ctx, after, levelsPage)
		if err != nil {
			return fmt.Errorf("fence list: %w", err)
		}
		for _, l := range levels {
			st, err := strategies.Lookup(l.Strategy)
			if (err != nil && !errors.Is(err, stock.ErrStrategyUnavailable)) || st.Update != stock.Fenced {
				continue
			}
			token, asked := present[st.Store]
			service, needed := "?", "?"
			switch {
			case st.RaisesCounter:
				service, needed = "-", "never: raised by itself"
			case asked:
				service, needed = fmt.Sprint(token), "no"
				if l.Base+token < l.Fence.Token {
					needed = "needed"
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", l.SKU, l.Strategy, l.Fence.Token, l.Base, service, needed)
		}
		if len(levels) < levelsPage {
			return errors.Join(w.Flush(), silent)
		}
		after = levels[len(levels)-1].SKU
	}
}

// present asks each service that is named for a fence, by strategy: the next one of any key is
// higher, as both count for all keys together. A service that does not answer has none, and is in
// the error.
func (c *fenceCall) present(ctx context.Context) (tokens map[string]uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	tokens = make(map[string]uint64)
	for name, ask := range map[string]func(context.Context) (uint64, error){"zookeeper": c.askZooKeeper, "etcd": c.askEtcd} {
		token, asking := ask(ctx)
		switch {
		case asking != nil:
			err = errors.Join(err, fmt.Errorf("fence list: %s is unavailable: %w", name, asking))
		case token > 0:
			tokens[name] = token
		}
	}
	return tokens, err
}

// askZooKeeper returns a token of ZooKeeper, or 0 without --zookeeper.
func (c *fenceCall) askZooKeeper(ctx context.Context) (token uint64, err error) {
	if c.zookeeper == "" {
		return 0, nil
	}
	session, err := zookeeper.Open(ctx, zookeeper.Config{Servers: strings.Split(c.zookeeper, ","), Timeout: fenceLease, Auth: c.zookeeperAuth})
	if err != nil {
		return 0, err
	}
	defer closeWithin(ctx, session.Close)
	locker, err := zklock.New(session, zklock.Config{})
	if err != nil {
		return 0, err
	}
	return tokenOf(ctx, locker)
}

// askEtcd returns a token of etcd, or 0 without --etcd.
func (c *fenceCall) askEtcd(ctx context.Context) (token uint64, err error) {
	if c.etcd == "" {
		return 0, nil
	}
	client, err := etcdlock.NewClient(c.etcd)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	locker, err := etcdlock.New(client, etcdlock.Config{TTL: fenceLease})
	if err != nil {
		return 0, err
	}
	defer closeWithin(ctx, locker.Close)
	return tokenOf(ctx, locker)
}

// tokenOf acquires a lease of an unused key.
func tokenOf(ctx context.Context, l dlock.Locker) (uint64, error) {
	call, cancel := context.WithTimeout(ctx, openTimeout/2)
	defer cancel()
	lease, err := l.Acquire(call, "fence")
	if err != nil {
		return 0, err
	}
	_ = lease.Release(ctx) // otherwise the service ends it
	return lease.Fence().Token, nil
}

// closeWithin closes a lock service. Leases that it cannot release expire.
func closeWithin(ctx context.Context, closing func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = closing(ctx)
}
