package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// conditions are where and when the numbers come from.
type conditions struct {
	date                  string
	cpu, kernel, system   string
	redis                 string
	libraries             []string // module and version
	loadBefore, loadAfter string
}

func (t *target) describe(ctx context.Context) (conditions, error) {
	server, err := t.info(ctx, "server")
	if err != nil {
		return conditions{}, err
	}
	c := conditions{
		date: time.Now().UTC().Format(time.DateOnly), redis: server["redis_version"],
		cpu:    field("/proc/cpuinfo", "model name") + ", " + strconv.Itoa(runtime.NumCPU()) + " cores",
		kernel: first("/proc/sys/kernel/osrelease"), system: runtime.GOOS + "/" + runtime.GOARCH,
		loadBefore: loadAverage(),
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return c, nil
	}
	c.libraries = append(c.libraries, "Go "+strings.TrimPrefix(build.GoVersion, "go"))
	for _, m := range build.Deps {
		switch m.Path {
		case "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock":
			c.libraries = append(c.libraries, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return c, nil
}

// loadAverage is that of the last minute, 5 and 15 minutes.
func loadAverage() string {
	return strings.Join(strings.Fields(first("/proc/loadavg") + " - -")[:3], " ")
}

// first returns the first line of a file of the kernel.
func first(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // The paths are those above.
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// field returns the first value of a name in lines like NAME : VALUE.
func field(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // As above.
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.Lines(string(text)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
