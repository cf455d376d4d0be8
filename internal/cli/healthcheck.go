package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.com/shop/internal/app"
)

// healthcheckCommand asks an instance whether it is ready.
func healthcheckCommand() Command {
	return Command{
		Name: "healthcheck", Summary: "Ask a running instance whether it is ready",
		Details: "The command sends GET /readyz, which needs no API key, and waits 3s for the response. It prints nothing if the instance is ready.",
		Examples: []Example{
			{"The instance on the default address", "shop healthcheck"},
			{"Another instance", "shop healthcheck --url http://127.0.0.1:8090"},
		},
		Exits: []Exit{{0, "the instance is ready"}, {1, "it is not ready, or does not respond"}},
		Define: func(f *Flags) Run {
			var base string
			f.URLVar(&base, "url", "http://"+app.DefaultListen, "`URL`: ask the instance at this base URL")
			return func(ctx context.Context, _ []string) error { return healthcheck(ctx, f, base) }
		},
	}
}

func healthcheck(ctx context.Context, f *Flags, at string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := client{f.Process, "healthcheck", at, "listen"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/readyz", http.NoBody) // which needs no authentication
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("healthcheck: read the response of %s: %w", at, err)
	}
	return c.refused(resp, answer)
}
