package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"example.com/shop/internal/httpapi"
)

const (
	askTimeout = 70 * time.Second // more than an instance takes for the slowest answer
	maxAnswer  = 16 << 20

	// keyVariable has the key of an admin, for instances that ask for one. It is no
	// flag: those of a process are for everybody to read.
	keyVariable = "SHOP_KEY"
)

// ask sends one request to the admin of an instance and reads the answer into v.
func (t *timersCall) ask(ctx context.Context, method, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, t.admin+"/api/v1/timers"+path, http.NoBody) //nolint:gosec // The user names the address.
	if err != nil {
		return fmt.Errorf("timers: %w", err)
	}
	if key := t.p.getenv(keyVariable); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // The same.
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("timers: nothing listens at %s: start an instance with shop serve --admin-listen %s, or name the one of another with --admin",
			t.admin, req.URL.Host)
	}
	if err != nil {
		return fmt.Errorf("timers: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("timers: read the answer of %s: %w", t.admin, err)
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("X-Instance-Id") != "" {
		if err := json.Unmarshal(body, v); err == nil {
			return nil
		}
	}
	return t.refused(resp, body)
}

// refused says why there is no answer. An address that has no such path is not that of an admin.
func (t *timersCall) refused(resp *http.Response, body []byte) error {
	var p httpapi.Problem
	err := json.Unmarshal(body, &p)
	problem := err == nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json")
	if !problem || p.Type == httpapi.TypeNotFound && strings.Contains(p.Detail, "this path") {
		return fmt.Errorf("timers: %s answers %s and is not the --admin-listen of an instance", t.admin, resp.Status)
	}
	if resp.StatusCode == http.StatusUnauthorized || p.Type == httpapi.TypeForbidden {
		return fmt.Errorf("timers: %s Set %s to an admin's key; shop keys create --admin makes one", p.Detail, keyVariable)
	}
	return fmt.Errorf("timers: %s", p.Detail)
}
