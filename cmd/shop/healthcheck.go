package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthcheck asks an instance whether it is ready.
func healthcheck(ctx context.Context, p process, args []string) error {
	f := newFlags(p, "healthcheck", "ask a running instance whether it is ready; exit 1 if it is not")
	base := f.String("url", "http://"+defaultListen, "`URL` of the instance")
	if err := f.parse(args); err != nil {
		return err
	}
	at, err := validBase("healthcheck", *base)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	i := instance{p, "healthcheck", at, "listen"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/readyz", http.NoBody) // for which nobody needs a key
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	resp, err := i.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("healthcheck: read the answer of %s: %w", at, err)
	}
	return i.refused(resp, answer)
}
