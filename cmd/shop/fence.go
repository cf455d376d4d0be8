package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

const (
	fenceTimeout = time.Minute
	levelsPage   = 1000 // how many SKUs are read at once
)

// fenceCommands are the commands below `shop fence`.
var fenceCommands = []struct {
	name, args, what string
	run              func(f *fenceCall, ctx context.Context, args []string) error
}{
	{"list", "", "show the SKUs that are sold with fences, and which of them need a rebase; a service is asked that --zookeeper or --etcd names", (*fenceCall).list},
	{"rebase", "SKU", "let the next lease of a SKU change it, however low its fence: for a lock service that has lost its data", (*fenceCall).rebase},
}

// fence runs the command below `shop fence` that args name.
func fence(ctx context.Context, p process, args []string) error {
	if len(args) == 0 {
		fenceUsage(p.stderr)
		return usageError{errors.New("fence: which command?")}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fenceUsage(p.stdout)
		return nil
	}
	for _, c := range fenceCommands {
		if c.name == args[0] {
			f := &fenceCall{p: p, flags: newFlags(p, strings.TrimSpace("fence "+c.name+" "+c.args), c.what)}
			databaseFlag(f.flags, &f.c.database)
			err := c.run(f, ctx, args[1:])
			if errors.Is(err, sqlstore.ErrNoSchema) {
				return fmt.Errorf("fence %s: the schema of %s is older than this program, and shop migrate brings it up to date", c.name, f.address)
			}
			return err
		}
	}
	return usageError{fmt.Errorf("fence: no command %q: want list, or rebase SKU", args[0])}
}

func fenceUsage(w io.Writer) {
	fmt.Fprintln(w, "shop fence helps when a lock service has lost its data, and the books refuse its fences.")
	fmt.Fprintln(w)
	for _, c := range fenceCommands {
		fmt.Fprintf(w, "  shop fence %-6s %-3s %s\n", c.name, c.args, c.what)
	}
}

// fenceCall is one command and what it was told.
type fenceCall struct {
	p     process
	flags *flags
	c     serveConfig // the stores

	address string // of the database, once it is open
}

// rebase has the fences of one SKU counted from what its row has accepted.
func (f *fenceCall) rebase(ctx context.Context, args []string) (err error) {
	rest, err := f.flags.parseWith(args, 0, len(args))
	switch {
	case err != nil:
		return err
	case len(rest) != 1:
		return usageError{errors.New("fence rebase: want one SKU")}
	case !stock.ValidSKU(rest[0]):
		return usageError{fmt.Errorf("fence rebase: %q cannot be a SKU", rest[0])}
	}
	store, err := openBooks(ctx, operator(f.p), f.c.database, sqlstore.AccessChange)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	f.address = store.Address()
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
	_, err = fmt.Fprintf(f.p.stdout, "%s (%s): fences count from %d, not from %d; noted in the ledger\n", after.SKU, after.Strategy, after.Base, before.Base)
	return err
}

// operator names who does something in the ledger, which has room for 64 characters.
func operator(p process) string {
	name := cmp.Or(p.getenv("USER"), "fence") + "@" + hostname()
	return strings.ToValidUTF8(name[:min(len(name), 64)], "")
}

// list shows what the rows have accepted beside what the services would give now.
func (f *fenceCall) list(ctx context.Context, args []string) (err error) {
	f.flags.StringVar(&f.c.zookeeper, "zookeeper", "", "HOST:2181,... of the strategy zookeeper, to ask for its fence")
	f.flags.StringVar(&f.c.zookeeperAuth, "zookeeper-auth", "", "`USER:PASSWORD` for --zookeeper, as the instances have it")
	f.flags.StringVar(&f.c.etcd, "etcd", "", "HOST:2379,... of the strategy etcd, to ask for its fence")
	if err := f.flags.parse(args); err != nil {
		return err
	}
	if err := errors.Join(validServers("zookeeper", f.c.zookeeper), validServers("etcd", f.c.etcd)); err != nil {
		return usageError{err}
	}
	store, err := openBooks(ctx, "fence", f.c.database, sqlstore.AccessRead)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	f.address = store.Address()
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	present, silent := f.present(ctx)
	strategies := stock.NewStrategies(stock.Lockers{})
	w := tabwriter.NewWriter(f.p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKU\tSTRATEGY\tACCEPTED\tBASE\tSERVICE\tREBASE")
	for after := ""; ; {
		levels, err := store.Levels(ctx, after, levelsPage)
		if err != nil {
			return fmt.Errorf("fence list: %w", err)
		}
		for _, l := range levels {
			st, err := strategies.Lookup(l.Strategy)
			if (err != nil && !errors.Is(err, stock.ErrStrategyUnavailable)) || st.Write != stock.Fenced {
				continue
			}
			token, asked := present[st.Store]
			service, needed := "?", "?"
			switch {
			case st.Reseeds:
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
func (f *fenceCall) present(ctx context.Context) (tokens map[string]uint64, err error) {
	var closers closers
	defer func() { err = errors.Join(err, closers.close(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	lockers := make(map[string]dlock.Locker)
	if f.c.zookeeper != "" {
		session, err := openZooKeeper(ctx, f.c, leaseTTL, &closers, log)
		if err != nil {
			return nil, fmt.Errorf("fence list: %w", err)
		}
		if lockers["zookeeper"], err = zklock.New(session, zklock.Config{}); err != nil {
			return nil, fmt.Errorf("fence list: %w", err)
		}
	}
	if f.c.etcd != "" {
		if lockers["etcd"], err = openEtcd(f.c.etcd, &closers, log); err != nil {
			return nil, fmt.Errorf("fence list: open etcd %s: %w", f.c.etcd, err)
		}
	}
	tokens = make(map[string]uint64)
	for name, l := range lockers {
		call, cancel := context.WithTimeout(ctx, startTimeout/2)
		lease, asking := l.Acquire(call, "fence")
		cancel()
		if asking != nil {
			err = errors.Join(err, fmt.Errorf("fence list: %s does not answer: %w", name, asking))
			continue
		}
		tokens[name] = lease.Fence().Token
		_ = lease.Release(ctx) // otherwise the service ends it
	}
	return tokens, err
}
