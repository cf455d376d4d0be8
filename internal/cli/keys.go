package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/sqlstore"
)

// keysTimeout is how long a command on keys may take, once the database is open.
const keysTimeout = time.Minute

// Keys manages the API keys in the database.
func Keys(ctx context.Context, f *Flags, args []string) error {
	k := &keysCall{p: f.Process}
	command := func(name, args, what string, run func(context.Context) error) Command {
		return Command{Name: name, Args: args, What: what, Run: func(ctx context.Context, f *Flags, args []string) error {
			if err := k.parse(f, name, args); err != nil {
				return err
			}
			return k.on(ctx, name, run)
		}}
	}
	return Group{
		What: "shop keys manages the API keys in the database, with or without a running instance.",
		Commands: []Command{
			command("create", "", "make a key and print it, once: give --customer C, or --admin, or both", k.create),
			command("list", "", "show all keys, the newest last, without their secrets", k.list),
			command("revoke", "PREFIX", "end a key for good", k.revoke),
		},
		Note: "shop keys COMMAND --help lists the flags. Only --database and --redis are also read from the environment.",
	}.Run(ctx, f, args)
}

// keysCall is one command with its flags and arguments.
type keysCall struct {
	p        Process
	database string
	redis    string // of the instances, to notify them of the revocation
	json     bool
	prefix   string          // to revoke
	key      identity.NewKey // to create
	store    *sqlstore.Store
	service  *identity.Service
}

func (k *keysCall) parse(f *Flags, command string, args []string) error {
	f.Getenv = onlyStores(f.Getenv)
	f.Database(&k.database)
	f.BoolVar(&k.json, "json", false, "print JSON")
	wanted := 0
	switch command {
	case "create":
		f.StringVar(&k.key.Customer, "customer", "", "the key is for the orders of this customer `ID`")
		f.BoolVar(&k.key.Admin, "admin", false, "the key may do everything")
		f.StringVar(&k.key.Name, "name", "", "a `LABEL` for people: up to 64 characters")
		f.DurationVar(&k.key.Life, "expires", 0, "how long the key works, such as 720h (default for ever)")
	case "revoke":
		f.StringVar(&k.redis, "redis", "", "the `URL` of the Redis that the instances use: they are notified, and refuse the key at once; SHOP_REDIS in the environment")
		wanted = 1
	}
	rest, err := f.ParseWith(args, 0, len(args)) // which would repeat one too many, and it may be a key
	if err != nil {
		return err
	}
	if len(rest) != wanted {
		return UsageError{fmt.Errorf("keys %s: want %d arguments, not %d", command, wanted, len(rest))}
	}
	if wanted == 1 {
		k.prefix = rest[0]
	}
	return k.validate(command, f.Given()["expires"])
}

// onlyStores hides all variables but those of the database and of Redis: what a key may
// do should stand where it is made.
func onlyStores(getenv func(string) string) func(string) string {
	return func(name string) string {
		if name != Variable("database") && name != Variable("redis") {
			return ""
		}
		return getenv(name)
	}
}

func (k *keysCall) validate(command string, ends bool) error {
	if err := app.ValidDatabase(k.database); err != nil {
		return UsageError{err}
	}
	switch command {
	case "create":
		if k.key.Customer == "" && !k.key.Admin {
			return UsageError{errors.New("keys create: whose key? Give --customer ID, or --admin for one that may do everything")}
		}
		if ends && k.key.Life == 0 {
			return UsageError{errors.New("keys create: --expires 0: want 1s to 87600h; without it the key works for ever")}
		}
		if err := k.key.Validate(); err != nil {
			return UsageError{fmt.Errorf("keys create: %s", strings.ReplaceAll(err.Error(), "\n", "; "))}
		}
	case "revoke":
		if err := app.ValidRedis(k.redis); err != nil {
			return UsageError{err}
		}
		if t, err := identity.ParseToken(k.prefix); err == nil {
			k.prefix = t.Prefix() // the argument may be a whole key
		}
		if !identity.ValidPrefix(k.prefix) {
			return UsageError{errors.New("keys revoke: want the PREFIX of a key as shop keys list shows it: ten letters and digits")}
		}
	}
	return nil
}

// on opens the database and runs a command on it.
func (k *keysCall) on(ctx context.Context, command string, run func(context.Context) error) (err error) {
	access := sqlstore.AccessChange
	if command == "list" {
		access = sqlstore.AccessRead
	}
	if k.store, err = openDatabase(ctx, "keys", k.database, access); err != nil {
		return err
	}
	defer closing(&err, k.store.Close)
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	if k.service, err = identity.New(k.store, identity.Config{}); err != nil {
		return err
	}
	err = run(ctx)
	if errors.Is(err, sqlstore.ErrNoSchema) {
		return fmt.Errorf("keys %s: %s has no keys: its schema is older than this program, and shop migrate brings it up to date", command, k.store.Address())
	}
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}
