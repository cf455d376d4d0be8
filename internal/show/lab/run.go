package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed"
)

// Event is one step of a run.
type Event struct {
	At   float64 `json:"at_ms"` // since the run began
	Text string  `json:"text"`
}

// Measured is one figure of a run.
type Measured struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // such as units, orders, ms
}

// Finding is one half of a verdict.
type Finding struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Result is what a run found. Its JSON form is public.
type Result struct {
	Number   int        `json:"number"`
	Name     string     `json:"name"`
	Verdict  Verdict    `json:"verdict"`
	Reason   string     `json:"reason,omitempty"` // of Inconclusive
	Effects  []Finding  `json:"effects"`          // what was to be seen
	Cures    []Finding  `json:"cures"`            // what was to work
	Steps    []Event    `json:"steps"`
	Measured []Measured `json:"measured"`
	Picture  *Picture   `json:"picture,omitempty"`
	Took     float64    `json:"took_ms"`
}

// Run is a run of a lab: what it has started, and what it has seen. Its methods are safe for concurrent use.
type Run struct {
	Config

	lab   Lab
	began time.Time

	mu       sync.Mutex
	steps    []Event
	measured []Measured
	effects  []Finding
	cures    []Finding
	picture  *Picture
	closers  []func() error
}

// Size returns the first number for a small run, and otherwise the second.
func (r *Run) Size(small, full int) int {
	if r.Small {
		return small
	}
	return full
}

// Step reports something that has happened.
func (r *Run) Step(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Event{At: milliseconds(time.Since(r.began)), Text: fmt.Sprintf(format, args...)}
	r.steps = append(r.steps, e)
	if r.Seen != nil {
		r.Seen(e)
	}
}

// Measure adds a figure to the result.
func (r *Run) Measure(name string, value float64, unit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measured = append(r.measured, Measured{name, value, unit})
}

// Effect says whether the effect was seen. A lab may have several.
func (r *Run) Effect(seen bool, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects = append(r.effects, Finding{seen, fmt.Sprintf(format, args...)})
}

// Cure says whether a cure worked. A lab may have several.
func (r *Run) Cure(works bool, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cures = append(r.cures, Finding{works, fmt.Sprintf(format, args...)})
}

// Draw sets the picture of the run, and returns it.
func (r *Run) Draw(p *Picture) *Picture {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.picture, p.began = p, r.began
	return p
}

// Defer has something closed when the run ends, in the opposite order.
func (r *Run) Defer(closer func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closers = append(r.closers, closer)
}

func (r *Run) close() error {
	r.mu.Lock()
	closers := slices.Clone(r.closers)
	r.mu.Unlock()
	var errs []error
	for _, closer := range slices.Backward(closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// result judges the run. ended is why its context has ended, if it has.
func (r *Run) result(ended, err error) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := Result{
		Number: r.lab.Number, Name: r.lab.Name, Effects: r.effects, Cures: r.cures, Steps: r.steps, Measured: r.measured,
		Picture: r.picture, Took: milliseconds(time.Since(r.began)), Verdict: Shown,
	}
	all := slices.Concat(r.effects, r.cures)
	switch {
	case errors.Is(err, testbed.ErrNotInstalled):
		result.Verdict, result.Reason = Inconclusive, fmt.Sprintf("%v: install it, on Debian with make servers", err)
	case ended != nil:
		result.Verdict, result.Reason = Inconclusive, ended.Error()
	case err != nil:
		result.Verdict, result.Reason = Inconclusive, err.Error()
	case slices.ContainsFunc(all, func(f Finding) bool { return !f.OK }):
		result.Verdict = NotShown
	case len(r.effects) == 0 || len(r.cures) == 0:
		result.Verdict, result.Reason = Inconclusive, "the lab has no effect or no cure"
	}
	return result
}

// await polls until done, and ends the script with what was not reached if ctx ends first.
func await(ctx context.Context, what string, done func() bool) {
	for !done() {
		if !backoff.Sleep(ctx, 10*time.Millisecond) {
			fail("%s: %w", what, context.Cause(ctx))
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
