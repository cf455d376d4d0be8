package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthcheck asks the instance that serves on --listen whether it is ready.
func healthcheck(ctx context.Context, p process, args []string) error {
	f := newFlags(p, "healthcheck", "ask a running instance whether it is ready; exit 1 if it is not")
	listen := f.String("listen", defaultListen, "`HOST:PORT` that the instance serves on")
	if err := f.parse(args); err != nil {
		return err
	}
	if err := validListen(*listen); err != nil {
		return usageError{err}
	}
	host, port, err := net.SplitHostPort(*listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}
