package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"example.com/shop/internal/httpapi"
)

// admin is the listener for operators; nil if there is none.
type admin struct {
	server   *http.Server
	listener net.Listener
}

// openAdmin listens on --admin-listen.
func openAdmin(ctx context.Context, c Config, api httpapi.Config, closers *closers, log *slog.Logger) (*admin, error) {
	if c.AdminListen == "" {
		return nil, nil //nolint:nilnil // None is a choice of the user and no error.
	}
	handler, err := httpapi.NewAdmin(api)
	if err != nil {
		return nil, err
	}
	listener, err := listenOn(ctx, "admin-listen", c.AdminListen)
	if err != nil {
		return nil, err
	}
	closers.push("admin listener", func(context.Context) error { _ = listener.Close(); return nil }) // run has closed it, if it came to that
	return &admin{server: httpapi.NewAdminServer(handler, log), listener: listener}, nil
}

// address returns where it listens, or nothing.
func (a *admin) address() string {
	if a == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// run serves until ctx ends. Requests that are in flight a second later are cut off.
func (a *admin) run(ctx context.Context) error {
	if a == nil {
		return nil
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		err := shutDown(context.WithoutCancel(ctx), a.server, time.Second)
		if err != nil {
			err = a.server.Close()
		}
		stopped <- err
	})
	err := a.server.Serve(a.listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin: %w", err)
	}
	return <-stopped
}
