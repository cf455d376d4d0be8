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
	for _, w := range plan() {
		for _, s := range w.subjects {
			if name, _, _ := strings.Cut(s.name, ","); !strings.Contains(out.String(), name) {
				t.Errorf("no row for %s", s.name)
			}
		}
	}
}

// A lock that excludes nobody must not get into any table.
func TestLoadFindsALockThatGrantsAlways(t *testing.T) {
	server, err := testbed.StartRedis(t.Context(), testbed.RedisConfig{})
	if errors.Is(err, testbed.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	target, err := openTarget(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer target.close()
	broken := subject{name: "broken", open: func(*redis.Client) (*client, error) {
		return &client{acquire: func(context.Context, string) (func(context.Context) error, error) {
			return func(context.Context) error { return nil }, nil
		}}, nil
	}}
	_, err = load{clients: 2, goroutines: 16, shared: true}.run(t.Context(), target, broken, 200*time.Millisecond)
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

func TestRatioComparesWithinRounds(t *testing.T) {
	a, b := cell{{rate: 10}, {rate: 1}, {rate: 6}}, cell{{rate: 5}, {rate: 1}, {rate: 2}}
	if got := ratio(a, b, rate); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := ratio(a, nil, rate); !math.IsNaN(got) {
		t.Errorf("with nothing to compare: got %v, want NaN", got)
	}
}

func TestMedianAndPercentile(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{1, math.Inf(1), math.Inf(1)}, math.Inf(1)}} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	waits := make([]time.Duration, 100)
	for i := range waits {
		waits[i] = time.Duration(i+1) * time.Microsecond
	}
	if a, b := percentile(waits, 99), percentile(waits, 100); a != 100 || b != 100 {
		t.Errorf("got %v and %v, want the highest two ranks", a, b)
	}
	if got := percentile(waits, 50); got != 51 {
		t.Errorf("got %v, want 51", got)
	}
}
