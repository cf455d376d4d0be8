package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
	"github.com/redis/go-redis/v9"

	"example.com/shop/loadtest/peers/bench"
)

func TestQuickRunHasARowForEverybody(t *testing.T) {
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"-quick"}, func(string) string { return "" }, &out, &progress)
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range plan(nil) {
		for _, s := range w.Cases {
			if name, _, _ := strings.Cut(s.Name, ","); !strings.Contains(out.String(), name) {
				t.Errorf("no row for %s", s.Name)
			}
		}
	}
}

// A lock that excludes nobody must not get into any table.
func TestLoadFindsALockThatGrantsAlways(t *testing.T) {
	server, err := bench.OpenServer(t.Context(), "")
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	broken := subject{name: "broken", open: func(*redis.Client) (*client, error) {
		return &client{acquire: func(context.Context, string) (func(context.Context) error, error) {
			return func(context.Context) error { return nil }, nil
		}}, nil
	}}
	_, err = load{clients: 2, goroutines: 16, shared: true}.run(t.Context(), server, broken, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "violated") {
		t.Errorf("got %v, want a violation", err)
	}
}

func TestBestPeerMustBeFairEnough(t *testing.T) {
	cells := map[string]cell{
		oursQueue: {{rate: 9, spread: 1}},
		"hog":     {{rate: 8, spread: 11}},
		"starves": {{rate: 7, spread: math.Inf(1)}},
		"fair":    {{rate: 5, spread: 10}},
		"slow":    {{rate: 4, spread: 2}},
	}
	if got := best(cells); got != "fair" {
		t.Errorf("got %q, want fair", got)
	}
}
