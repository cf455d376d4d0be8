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

// side is a listener beside that of the API; nil if there is none.
type side struct {
	server   *http.Server
	listener net.Listener
}

// openSides listens on --admin-listen and --metrics-listen.
func openSides(ctx context.Context, c Config, api httpapi.Config, closers *closers, log *slog.Logger) (admin, metrics *side, err error) {
	handler, err := httpapi.NewAdmin(api)
	if err != nil {
		return nil, nil, err
	}
	if admin, err = openSide(ctx, "admin-listen", c.AdminListen, httpapi.NewAdminServer(handler, log), closers); err != nil {
		return nil, nil, err
	}
	metrics, err = openSide(ctx, "metrics-listen", c.MetricsListen, httpapi.NewServer(httpapi.NewMetrics(api), log), closers)
	return admin, metrics, err
}

func openSide(ctx context.Context, flag, address string, server *http.Server, closers *closers) (*side, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // None is a choice of the user and no error.
	}
	listener, err := listenOn(ctx, flag, address)
	if err != nil {
		return nil, err
	}
	closers.push("listener", func(context.Context) error { _ = listener.Close(); return nil }) // run has closed it, if it came to that
	return &side{server: server, listener: listener}, nil
}

// address returns where it listens, or nothing.
func (a *side) address() string {
	if a == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// run serves until ctx ends. Requests that are in flight a second later are cut off.
func (a *side) run(ctx context.Context) error {
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
		return fmt.Errorf("serve %s: %w", a.address(), err)
	}
	return <-stopped
}
