package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"example.com/shop/internal/httpapi"
)

// listening stands before the address in the line that an instance prints once it serves. Programs that start instances read it.
const listening = "listening on "

// canListen listens on the addresses of c for a moment and closes them. A bad address so ends the start before a store is opened,
// which may create a file. A listener that stayed open would keep clients waiting for the stores.
func canListen(ctx context.Context, c Config) error {
	for _, each := range [][2]string{{"listen", c.Listen}, {"admin-listen", c.AdminListen}, {"metrics-listen", c.MetricsListen}} {
		flag, address := each[0], each[1]
		if address == "" {
			continue
		}
		listener, err := listenOn(ctx, flag, address)
		if err != nil {
			return err
		}
		defer listener.Close() // after the others have been tried, which must not have the same address
	}
	return nil
}

// listenOn listens on the address that a flag names.
func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w; port 0 takes a free one", flag, address, err)
	}
	return listener, nil
}

// listen opens the listeners, says where they are, and returns what serves on them, and where others reach the instance.
func listen(ctx context.Context, stdout io.Writer, c Config, api httpapi.Config, endStreams func(), closers *closers) (address string, front func(context.Context) error, sides []func(context.Context) error, err error) {
	handler, err := httpapi.New(api)
	if err != nil {
		return "", nil, nil, err
	}
	admin, metrics, err := openSides(ctx, c, api, closers, api.Logger)
	if err != nil {
		return "", nil, nil, err
	}
	listener, err := listenOn(ctx, "listen", c.Listen)
	if err != nil {
		return "", nil, nil, err
	}
	api.Logger.InfoContext(ctx, "serving", slog.String("address", listener.Addr().String()),
		slog.Bool("canary", c.Canary),
		slog.String("auth", c.Auth), slog.Int("permits", c.Permits), slog.String("admin", admin.address()), slog.String("metrics", metrics.address()))
	fmt.Fprintf(stdout, "shop %s %shttp://%s\n", c.Instance, listening, listener.Addr())
	front = func(ctx context.Context) error {
		server := httpapi.NewServer(handler, api.Logger)
		server.RegisterOnShutdown(endStreams) // after balancers have noticed, so that clients reconnect to other instances
		return serveHTTP(ctx, server, listener, api.Drain, api.Logger)
	}
	return advertised(c, listener.Addr()), front, []func(context.Context) error{admin.run, metrics.run}, nil
}
