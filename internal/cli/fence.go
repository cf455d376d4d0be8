package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/zookeeper"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

const (
	fenceLease = 2 * time.Second
	levelsPage = 1000 // how many SKUs are read at once
)

// fenceCommand repairs SKUs whose lock service has lost its data.
func fenceCommand() Command {
	return Command{
		Name: "fence", Summary: "Repair SKUs whose lock service has lost its data",
		Details: "A lock service that has lost its data issues low fencing tokens again, and the database refuses them. " +
			"Strategies on Redis, Redlock and SQL repair this themselves; strategies on ZooKeeper and etcd need shop fence rebase.",
		Commands: []Command{
			{
				Name: "list", Summary: "Show the SKUs with fencing tokens, and which of them need a rebase",
				Examples: []Example{
					{"The tokens that the database has accepted", "shop fence list --database mysql://USER:PASSWORD@127.0.0.1:3306/shop"},
					{"Compared with the tokens that etcd would issue now", "shop fence list --etcd 127.0.0.1:2379"},
					{"As JSON", "shop fence list --json"},
				},
				Exits: []Exit{{1, "the database cannot be read, or a named service does not respond"}},
				Define: func(f *Flags) Run {
					c := &fenceCall{}
					f.DatabaseVar(&c.database)
					f.StringVar(&c.zookeeper, "zookeeper", "", "`HOST:2181,...`: ask this ZooKeeper for its next token")
					f.StringVar(&c.zookeeperAuth, "zookeeper-auth", "", "`USER:PASSWORD`: authenticate to --zookeeper as this user, as the instances do")
					f.StringVar(&c.etcd, "etcd", "", "`HOST:2379,...`: ask this etcd for its next token")
					f.BoolVar(&c.json, "json", false, "print JSON")
					return func(ctx context.Context, _ []string) error {
						services := app.Config{Database: c.database, ZooKeeper: c.zookeeper, ZooKeeperAuth: c.zookeeperAuth, Etcd: c.etcd}
						if err := services.ValidateStores(); err != nil {
							return UsageError{err}
						}
						return withDatabase(ctx, "fence", c.database, sqlstore.AccessRead, func(ctx context.Context, store *sqlstore.Store) error {
							return c.list(ctx, f, store)
						})
					}
				},
			},
			{
				Name: "rebase", Args: "SKU", Summary: "Accept the next lease of a SKU, however low its fencing token is",
				Details: "The command raises the token offset of the SKU above the last accepted token, and notes it in the ledger.",
				Examples: []Example{
					{"One SKU", "shop fence rebase ticket"},
					{"Another database", "shop fence rebase ticket --database mysql://USER:PASSWORD@127.0.0.1:3306/shop"},
				},
				Define: func(f *Flags) Run {
					var database string
					f.DatabaseVar(&database)
					return func(ctx context.Context, args []string) error {
						sku := args[0]
						if !stock.ValidSKU(sku) {
							return UsageError{fmt.Errorf("SKU %q is malformed: want 1 to 64 letters, digits, dots, dashes and underscores", sku)}
						}
						return withDatabase(ctx, operator(f.Process), database, sqlstore.AccessChange, func(ctx context.Context, store *sqlstore.Store) error {
							return rebase(ctx, f, store, sku)
						})
					}
				},
			},
		},
	}
}

// fenceCall is shop fence list with its flags.
type fenceCall struct {
	database, zookeeper, zookeeperAuth, etcd string // as the flags have them
	json                                     bool
}

// rebase raises the token offset of one SKU above the last accepted fencing token.
func rebase(ctx context.Context, f *Flags, store *sqlstore.Store, sku string) error {
	before, err := store.Level(ctx, sku)
	if errors.Is(err, stock.ErrNotFound) {
		return fmt.Errorf("fence rebase: %w: run shop fence list for the SKUs", err)
	}
	if err != nil {
		return fmt.Errorf("fence rebase: %w", err)
	}
	after, err := stock.NewService(store, stock.NewStrategies(stock.Lockers{}), nil).Rebase(ctx, sku)
	if err != nil {
		return fmt.Errorf("fence rebase: %w", err)
	}
	_, err = fmt.Fprintf(f.Stdout, "%s (%s): raised the token offset from %d to %d, and noted it in the ledger\n", after.SKU, after.Strategy, before.Base, after.Base)
	return err
}

// operator is the name of the operator in the ledger, at most 64 characters.
func operator(p Process) string {
	name := cmp.Or(p.Getenv("USER"), "fence") + "@" + app.Hostname()
	return strings.ToValidUTF8(name[:min(len(name), 64)], "")
}

// list shows the last accepted fencing tokens alongside the tokens that the services would issue now.
func (c *fenceCall) list(ctx context.Context, f *Flags, store *sqlstore.Store) error {
	present, silent := c.present(ctx)
	strategies := stock.NewStrategies(stock.Lockers{})
	listed := []fenceJSON{}
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
			row := fenceJSON{SKU: l.SKU, Strategy: l.Strategy, Accepted: l.Fence.Token, Base: l.Base, Rebase: "unknown"}
			token, asked := present[st.Store]
			switch {
			case st.RaisesCounter:
				row.Rebase = "never"
			case asked && l.Base+token < l.Fence.Token:
				row.Service, row.Rebase = &token, "needed"
			case asked:
				row.Service, row.Rebase = &token, "no"
			}
			listed = append(listed, row)
		}
		if len(levels) < levelsPage {
			return errors.Join(c.print(f.Stdout, listed), silent)
		}
		after = levels[len(levels)-1].SKU
	}
}

// fenceJSON is the fence of a SKU as --json prints it.
type fenceJSON struct {
	SKU      string  `json:"sku"`
	Strategy string  `json:"strategy"`
	Accepted uint64  `json:"accepted"`          // the last accepted token
	Base     uint64  `json:"base"`              // what is added to the tokens of the service
	Service  *uint64 `json:"service,omitempty"` // the token that the service would issue now, if it was asked
	Rebase   string  `json:"rebase"`            // needed, no, unknown, or never: the strategy raises the counter itself
}

func (c *fenceCall) print(w io.Writer, listed []fenceJSON) error {
	if c.json {
		return printIndented(w, listed)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SKU\tSTRATEGY\tACCEPTED\tBASE\tSERVICE\tREBASE")
	for _, l := range listed {
		service, rebase := "?", l.Rebase
		switch {
		case l.Service != nil:
			service = fmt.Sprint(*l.Service)
		case rebase == "never":
			service, rebase = "-", "never: raised by itself"
		case rebase == "unknown":
			rebase = "?"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", l.SKU, l.Strategy, l.Accepted, l.Base, service, rebase)
	}
	return t.Flush()
}

// present returns a fence of each named service, by strategy. The next fence of any key is higher, because both
// services count for all keys together. The error names each service that does not respond.
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
	cfg, err := zookeeper.Address(c.zookeeper)
	if err != nil {
		return 0, err
	}
	cfg.Timeout, cfg.Auth = fenceLease, c.zookeeperAuth
	session, err := zookeeper.Open(ctx, cfg)
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
