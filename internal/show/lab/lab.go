package lab

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Lab is one experiment.
type Lab struct {
	Number int    `json:"number"`
	Name   string `json:"name"` // for the command line
	Words
	Links []Link   `json:"links"`           // to the code of the cure, and to its test
	Needs []string `json:"needs,omitempty"` // servers: if one is not installed, a run is inconclusive

	Script func(ctx context.Context, r *Run) `json:"-"` // see [attempt]

	worker func(ctx context.Context, w *Worker) // what its processes do, a script too; nil if it has none of its own
}

// Link names a file of the repository.
type Link struct {
	Text string `json:"text"`
	Path string `json:"path"` // from the root of the repository
}

// Verdict is what a lab found.
type Verdict string

// The verdicts of a lab.
const (
	Shown        Verdict = "shown"
	NotShown     Verdict = "not shown"
	Inconclusive Verdict = "inconclusive"
)

// ExitCode returns what a command exits with.
func (v Verdict) ExitCode() int {
	return map[Verdict]int{Shown: 0, NotShown: 1, Inconclusive: 3}[v]
}

// labTimeout is how long a lab may take on a quiet machine. At full size, the longest lab takes about 20 s.
const labTimeout = 30 * time.Second

// All returns the labs, in the order of their numbers.
func All() []Lab {
	all := []Lab{
		{Name: "mutex", Script: runMutex},
		{Name: "lost-update", Script: runLostUpdate, worker: orderWorker},
		{Name: "lease-expires", Script: runLeaseExpires, worker: orderWorker},
		{Name: "paused-holder", Script: runPausedHolder, worker: orderWorker},
		{Name: "unlock-early", Script: runUnlockEarly, worker: orderWorker},
		{Name: "foreign-release", Script: runForeignRelease, worker: orderWorker},
		{Name: "failover", Needs: []string{"redis-server"}, Script: runFailover, worker: orderWorker},
		{Name: "redlock", Needs: []string{"redis-server"}, Script: runRedlock, worker: redlockWorker},
		{Name: "late-check", Script: runLateCheck, worker: lateCheckWorker},
		{Name: "deadlock", Script: runDeadlock, worker: basketWorker},
		{Name: "watchdog", Script: runWatchdog, worker: watchdogWorker},
		{Name: "fairness", Needs: []string{"redis-server"}, Script: runFairness, worker: fairnessWorker},
		{Name: "timers", Script: runTimers, worker: timersWorker},
		{Name: "pay-or-expire", Script: runPayOrExpire, worker: payOrExpireWorker},
		{Name: "retry", Script: runRetry},
		{Name: "heat", Script: runHeat, worker: heatWorker},
		{Name: "two-writers", Needs: []string{"mariadbd", "galera-4", "rsync"}, Script: runTwoWriters, worker: orderWorker},
		{Name: "database-failover", Needs: []string{"mariadbd"}, Script: runDatabaseFailover},
		{Name: "clock-jump", Needs: []string{"redis-server", "libfaketime.so.1"}, Script: runClockJump, worker: orderWorker},
		{Name: "clock-back", Needs: []string{"redis-server", "libfaketime.so.1"}, Script: runClockBack, worker: orderWorker},
		{Name: "stock-cache", Script: runStockCache, worker: cacheWorker},
	}
	for i := range all {
		all[i].Number = i + 1
		all[i].read()
	}
	return all
}

// Find returns the lab with a name.
func Find(name string) (Lab, error) {
	all := All()
	i := slices.IndexFunc(all, func(l Lab) bool { return l.Name == name })
	if i < 0 {
		var names []string
		for _, l := range all {
			names = append(names, l.Name)
		}
		return Lab{}, fmt.Errorf("no lab %q; there are %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

// Config says how to run a lab.
type Config struct {
	Executable string        // the program, for instances and workers
	Small      bool          // few orders: for a quick look
	Seen       func(s Event) // called with each step, from one goroutine at a time; may be nil
}

// Do runs a lab. It returns the result when all processes and servers of the lab have ended. The run ends after 30 s, or
// when ctx ends: both make the result inconclusive. On a busy machine, the 30 s are up to five times as long, and the lab
// may place as few orders as with Small.
func (l Lab) Do(ctx context.Context, c Config) Result {
	r := &Run{Config: c, lab: l, began: time.Now()}
	busy := slowness(ctx, c.Executable)
	limit := time.Duration(busy * float64(labTimeout)).Round(time.Second)
	r.Small = c.Small || busy > tooBusy
	advice := "--small places fewer orders"
	if r.Small {
		advice = "the machine is too busy"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the lab took longer than %v: %s", limit, advice))
	defer cancel()
	if r.Small && !c.Small {
		r.Step("this machine is busy: a process takes %.1f times as long as usual to start. The lab measures less, as with --small, and may take %v", busy, limit)
	}
	err := attempt(func() { l.Script(ctx, r) })
	err = errors.Join(err, r.close())
	return r.result(context.Cause(ctx), err)
}

const (
	starts     = 3                      // of the program, one after the other, to measure a machine
	usualStart = 150 * time.Millisecond // how long they may take on a quiet machine
	tooBusy    = 2.0                    // times as long
	slowest    = 5.0
)

// slowness measures how much slower than usual a process starts, at least 1 and at most slowest.
func slowness(ctx context.Context, executable string) float64 {
	if executable == "" {
		return 1
	}
	began := time.Now()
	for range starts {
		if exec.CommandContext(ctx, executable, "lab", "list").Run() != nil {
			return 1
		}
	}
	return min(max(1, time.Since(began).Seconds()/usualStart.Seconds()), slowest)
}

// Serve is the main function of a worker of the lab with that name: a process of its own, which the lab starts.
func Serve(ctx context.Context, name string, w *Worker) error {
	l, err := Find(name)
	if err != nil {
		return err
	}
	if l.worker == nil {
		return fmt.Errorf("the lab %s has no workers", l.Name)
	}
	return attempt(func() { l.worker(ctx, w) })
}
