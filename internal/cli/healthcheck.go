package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.com/shop/internal/app"
)

// Healthcheck asks an instance whether it is ready.
func Healthcheck(ctx context.Context, f *Flags, args []string) error {
	base := f.String("url", "http://"+app.DefaultListen, "`URL` of the instance")
	if err := f.Parse(args); err != nil {
		return err
	}
	at, err := ValidBase("healthcheck", *base)
	if err != nil {
		return err
	}
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
		return fmt.Errorf("healthcheck: read the answer of %s: %w", at, err)
	}
	return c.refused(resp, answer)
}
