package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/shop/bench/throughput"
	"example.com/shop/internal/platform/testbed"
)

// The test binary is an instance of a library, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// quick measures at the smallest size, and returns the report of its folder.
func quick(t *testing.T) (r throughput.Report) {
	t.Helper()
	out := t.TempDir()
	err := measure(t.Context(), []string{
		"-strategies", "naive,redis", "-instances", "2", "-connections", "12", "-crowd", "0",
		"-rounds", "2", "-duration", "1s", "-warmup", "300ms", "-out", out,
	}, io.Discard)
	if errors.Is(err, testbed.ErrNotInstalled) && os.Getenv("SHOP_TEST_REQUIRE") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"throughput.md", "throughput.json", "throughput.svg"} {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || !strings.Contains(string(b), "naive") {
			t.Errorf("%s: %v: %s", name, err, b)
		}
		if name == "throughput.json" {
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// The variants sell by real strategies on real servers, and their figures belong to orders that are in the database.
func TestReportAtTheSmallestSize(t *testing.T) {
	t.Parallel()
	r := quick(t)
	for tries := 1; tries < 3 && slices.ContainsFunc(r.Variants, soldNothing); tries++ { // the machine was paused for a round
		r = quick(t)
	}
	var names []string
	for _, a := range r.Variants {
		names = append(names, a.Strategy)
		if !a.OK() || len(a.Rounds) != 2 || a.OrdersPerSecond <= 0 || a.P50 <= 0 || a.P999 < a.P99 || a.P99 < a.P50 {
			t.Errorf("%+v", a)
		}
		if a.SQL < 1 || a.Commits < 0.1 || a.CPU["shop"] <= 0 {
			t.Errorf("the cost of an order is missing: %+v", a)
		}
	}
	if want := []string{"naive", "redis", "redsync", "bsm-redislock"}; !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	if naive := r.Variants[0]; naive.Oversold == 0 && naive.LostUpdates == 0 || naive.ToNaive != 1 {
		t.Errorf("%+v", naive)
	}
	if fenced := r.Variants[1]; !fenced.AuditOK || fenced.Oversold != 0 || fenced.Undersold != 0 || fenced.LostUpdates != 0 || fenced.Redis <= r.Variants[0].Redis {
		t.Errorf("%+v", fenced)
	}
	if l := r.Limits; l.Commits <= 0 || l.Rows <= l.Commits || l.Requests <= 0 {
		t.Errorf("%+v", l)
	}
	if v := r.Machine.Servers; !strings.Contains(v["mariadb"], ".") || !strings.Contains(v["redis"], ".") {
		t.Errorf("the versions of the servers are missing: %+v", r.Machine)
	}
}

func soldNothing(a throughput.Variant) bool {
	return slices.ContainsFunc(a.Rounds, func(r throughput.Round) bool { return r.OrdersPerSecond == 0 })
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`no strategy "fast"`: {"-strategies", "fast"},
		"--rounds -1":        {"-rounds", "-1"},
		"one database":       {"-stores", "redis"},
	} {
		if err := measure(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
