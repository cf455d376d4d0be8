package measure

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine is where and when numbers come from.
type Machine struct {
	Date                string
	CPU, Kernel, System string
	Libraries           []string // module and version
	LoadBefore          string
}

// Describe returns this machine, and the versions of Go and of those modules that
// the program is built with.
func Describe(modules ...string) Machine {
	m := Machine{
		Date:   time.Now().UTC().Format(time.DateOnly),
		CPU:    field("/proc/cpuinfo", "model name") + ", " + strconv.Itoa(runtime.NumCPU()) + " cores",
		Kernel: first("/proc/sys/kernel/osrelease"), System: runtime.GOOS + "/" + runtime.GOARCH,
		LoadBefore: LoadAverage(),
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	m.Libraries = append(m.Libraries, "Go "+strings.TrimPrefix(build.GoVersion, "go"))
	for _, d := range build.Deps {
		if slices.Contains(modules, d.Path) {
			m.Libraries = append(m.Libraries, strings.TrimPrefix(d.Path, "github.com/")+" "+d.Version)
		}
	}
	return m
}

// LoadAverage is that of the last minute, 5 and 15 minutes.
func LoadAverage() string {
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
