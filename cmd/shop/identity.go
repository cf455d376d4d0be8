package main

import (
	"context"
	"log/slog"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/sqlstore"
)

// Whether requests need a key.
const (
	authKeys = "keys"
	authNone = "none"
)

// openIdentity returns what knows callers by their keys, or nil if nobody is asked.
func openIdentity(ctx context.Context, c serveConfig, store *sqlstore.Store, log *slog.Logger) (httpapi.Identity, error) {
	if c.auth == authNone {
		log.WarnContext(ctx, "nobody is asked for a key: whoever reaches the listener may do everything", slog.String("listen", c.listen))
		return nil, nil //nolint:nilnil // None is a choice of the user and no error.
	}
	return identity.New(store, identity.Config{})
}
