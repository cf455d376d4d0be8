package throughput

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine says where the run was.
func (l *lab) machine(ctx context.Context) (Machine, error) {
	servers, err := l.meter.versions(ctx)
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(), Time: time.Now().UTC().Format(time.RFC3339),
		CPU: processor(), Commit: commitOf(l.Executable), Servers: servers,
	}, err
}

// Build builds the shop of this checkout.
func Build(ctx context.Context, to string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "example.com/shop").Output()
	if err != nil {
		return fmt.Errorf("this runs in bench: %w", err)
	}
	// The report names the commit, also where GOFLAGS leaves it out of programs.
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=auto", "-o", to, "./cmd/shop") //nolint:gosec // our own folder
	build.Dir = strings.TrimSpace(string(root))
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the service: %w\n%s", err, said)
	}
	return nil
}

// versions asks the servers for theirs.
func (m *meter) versions(ctx context.Context) (map[string]string, error) {
	all := make(map[string]string)
	if m.db != nil {
		var version string
		if err := m.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
			return nil, fmt.Errorf("version of the database: %w", err)
		}
		all["mariadb"], _, _ = strings.Cut(version, "-")
	}
	info, err := m.rdb.Info(ctx, "server").Result()
	if err != nil {
		return nil, fmt.Errorf("version of redis: %w", err)
	}
	all["redis"] = field(info, "redis_version:")
	return all, nil
}

// processor returns the model of the processor, or an empty string.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, name, _ := strings.Cut(field(string(text), "model name"), ":")
	return strings.TrimSpace(name)
}

// field returns the text after name in the first line that begins with it.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// commitOf returns what a program was built from, or nothing if it does not report it, as those
// of go run.
func commitOf(executable string) string {
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		return ""
	}
	var commit string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true" && commit != "":
			commit += ", changed"
		}
	}
	return commit
}
