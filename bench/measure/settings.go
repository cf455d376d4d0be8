package measure

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/pprof"
	"time"
)

// Settings are what the flags say.
type Settings struct {
	Program    string
	Cell       time.Duration
	Rounds     int
	Quick      bool
	Markdown   string
	CPUProfile string
	Only       *regexp.Regexp
	Redis      string // address of a server, or empty
}

// Parse reads the flags of a program into the settings, whose Program, Cell and
// Rounds are the defaults. Quick is how long a cell takes with -quick.
func (s Settings) Parse(args []string, quick time.Duration, getenv func(string) string, stderr io.Writer) (Settings, error) {
	var only string
	flags := flag.NewFlagSet(s.Program, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&s.Cell, "cell", s.Cell, "time per cell, over all rounds; some take a multiple of that")
	flags.IntVar(&s.Rounds, "rounds", s.Rounds, "number of rounds")
	flags.BoolVar(&s.Quick, "quick", false, "one short round; writes no file")
	flags.StringVar(&s.Markdown, "markdown", "", "file to write the tables to")
	flags.StringVar(&s.CPUProfile, "cpuprofile", "", "file to write a CPU profile of this process to")
	flags.StringVar(&only, "only", "", "regular expression for WORKLOAD/SUBJECT; writes no tables to files")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.Quick {
		s.Rounds, s.Cell = 1, quick
	}
	if s.Rounds < 1 || s.Cell <= 0 {
		return s, errors.New("-rounds and -cell must be positive")
	}
	if s.Quick || only != "" {
		s.Markdown = ""
	}
	var err error
	s.Only, err = regexp.Compile(only)
	s.Redis = getenv("SHOP_REDIS")
	return s, err
}

// Profile starts the CPU profile that the settings ask for, of this process, which
// is all of the clients. Stop is never nil.
func (s Settings) Profile() (stop func() error, err error) {
	stop = func() error { return nil }
	if s.CPUProfile == "" {
		return stop, nil
	}
	file, err := os.Create(s.CPUProfile)
	if err != nil {
		return stop, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return stop, errors.Join(err, file.Close())
	}
	return func() error { pprof.StopCPUProfile(); return file.Close() }, nil
}
