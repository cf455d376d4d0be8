package cli

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/app"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/sqlstore"
)

// keysCommand manages the API keys in the database.
func keysCommand() Command {
	return Command{
		Name: "keys", Summary: "Create, list and revoke API keys",
		Details: "The commands change the database, with or without a running instance.",
		Commands: []Command{
			{
				Name: "create", Summary: "Create a key and print it once",
				Details: "Only a hash of the key is stored. Give --customer, --admin or both.",
				Examples: []Example{
					{"A key that may do everything", "shop keys create --admin"},
					{"A key for the orders of one customer, for 30 days", "shop keys create --customer c1 --expires 720h --name checkout"},
				},
				Define: func(f *Flags) Run {
					k := newKeysCall(f)
					f.StringVar(&k.key.Customer, "customer", "", "`ID`: allow the orders of this customer")
					f.BoolVar(&k.key.Admin, "admin", false, "allow everything")
					f.StringVar(&k.key.Name, "name", "", "`LABEL`: note this label of at most 64 characters with the key")
					f.DurationVar(&k.key.Life, "expires", 0, "expire the key after this time, 1s to 87600h")
					f.DefaultText("expires", "never")
					return func(ctx context.Context, _ []string) error {
						if err := k.validate(f.Given("expires")); err != nil {
							return UsageError{err}
						}
						return k.run(ctx, sqlstore.AccessChange, k.create)
					}
				},
			},
			{
				Name: "list", Summary: "Show all keys without their secrets, the newest last",
				Examples: []Example{
					{"As a table", "shop keys list"},
					{"As JSON", "shop keys list --json"},
				},
				Define: func(f *Flags) Run {
					k := newKeysCall(f)
					return func(ctx context.Context, _ []string) error { return k.run(ctx, sqlstore.AccessRead, k.list) }
				},
			},
			{
				Name: "revoke", Args: "PREFIX", Summary: "Revoke a key for good",
				Examples: []Example{
					{"A key by its prefix, as shop keys list shows it", "shop keys revoke abcdefgh23"},
					{"Notify the instances, which then refuse the key at once", "shop keys revoke abcdefgh23 --redis redis://127.0.0.1:6379/0"},
				},
				Define: func(f *Flags) Run {
					k := newKeysCall(f)
					f.StringVar(&k.redis, "redis", "", "`URL`: notify the instances through their Redis; without it, they refuse the key within 5s")
					return func(ctx context.Context, args []string) error {
						if err := k.choose(args[0]); err != nil {
							return UsageError{err}
						}
						return k.run(ctx, sqlstore.AccessChange, k.revoke)
					}
				},
			},
		},
	}
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

// newKeysCall defines the flags that all of these commands have.
func newKeysCall(f *Flags) *keysCall {
	k := &keysCall{p: f.Process}
	f.DatabaseVar(&k.database)
	f.BoolVar(&k.json, "json", false, "print JSON")
	return k
}

// validate returns what is wrong with the key to create, and with its end if it is given.
func (k *keysCall) validate(ends bool) error {
	if k.key.Customer == "" && !k.key.Admin {
		return errors.New("missing --customer ID or --admin: a key is for a customer, for an admin, or both")
	}
	if ends && k.key.Life == 0 {
		return errors.New("--expires 0: want 1s to 87600h; without it the key never expires")
	}
	return k.key.Validate()
}

// choose takes the prefix of the key to revoke, or a whole key.
func (k *keysCall) choose(key string) error {
	if err := app.ValidRedis(k.redis); err != nil {
		return err
	}
	if t, err := identity.ParseToken(key); err == nil {
		key = t.Prefix()
	}
	k.prefix = key
	if !identity.ValidPrefix(key) {
		return errors.New("PREFIX is malformed: want ten letters and digits, as shop keys list shows them")
	}
	return nil
}

// run opens the database and runs a command on it.
func (k *keysCall) run(ctx context.Context, access sqlstore.Access, run func(context.Context) error) error {
	return withDatabase(ctx, "keys", k.database, access, func(ctx context.Context, store *sqlstore.Store) (err error) {
		k.store = store
		if k.service, err = identity.New(store, identity.Config{}); err != nil {
			return err
		}
		if err := run(ctx); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		return nil
	})
}
