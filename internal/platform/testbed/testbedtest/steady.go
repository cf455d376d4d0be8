package testbedtest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	// trials is how often a test is given the chance to meet a machine that runs.
	trials = 8

	// standstill is the longest pause in a run that counts. standstillShare bounds the sum of small pauses, as a
	// share of each second: a request that they delay has long failed when a long run ends.
	standstill      = 100 * time.Millisecond
	standstillShare = 5 // a fifth
)

// Steady runs f. If f fails and this machine or this process was paused meanwhile, f runs again after its cleanups, at
// most seven times. The time limits of a test, and the leases that it expects to be kept, assume a machine that runs. A
// failure during a pause proves nothing about the product.
//
// A failure while the machine ran is final, and so is the last one. [Final] reports a failure that no slow machine
// excuses. A data race fails the test whenever it is found.
func Steady(t *testing.T, f func(t testing.TB)) {
	t.Helper()
	steady(t, func() judge { return watch() }, f)
}

// host is what a test is to Steady.
type host interface {
	testing.TB

	Deadline() (end time.Time, ok bool)
}

// judge says at the end of a run whether the machine was paused.
type judge interface {
	end() (stood string, still bool)
}

func steady(t host, watch func() judge, f func(t testing.TB)) {
	t.Helper()
	for n := range trials {
		began, w, r := time.Now(), watch(), &trial{TB: t}
		r.run(f)
		stood, still := w.end()
		switch end, ok := t.Deadline(); {
		case r.Skipped() && !r.Failed():
			t.SkipNow()
		case !r.Failed():
			return
		case !still, r.isFinal(), n == trials-1, ok && time.Until(end) < 2*time.Since(began):
			t.FailNow()
		}
		repeated.Add(1)
		t.Logf("that proves nothing: %s; once more", stood)
	}
}

// Final fails the test, inside of [Steady] too, whatever the machine does.
func Final(t testing.TB, format string, args ...any) {
	t.Helper()
	if r, ok := t.(*trial); ok {
		r.mu.Lock()
		r.final = true
		r.mu.Unlock()
	}
	t.Errorf(format, args...)
}

// trial is one run of a test. Its failure is not that of the test.
type trial struct {
	testing.TB

	ctx    context.Context //nolint:containedctx // It is what Context returns.
	cancel context.CancelFunc

	mu                           sync.Mutex
	failed, final, skipped, over bool
	atEnd                        []func()
}

// run returns when f has ended, and what f has registered with Cleanup.
func (r *trial) run(f func(t testing.TB)) {
	r.ctx, r.cancel = context.WithCancel(r.TB.Context())
	done := make(chan struct{})
	go func() { // FailNow and SkipNow end it
		defer close(done)
		defer r.cleanUp()
		defer r.cancel()
		f(r)
	}()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// cleanUp continues with the next function when one ends the goroutine.
func (r *trial) cleanUp() {
	r.mu.Lock()
	last := len(r.atEnd) - 1
	if last < 0 {
		r.mu.Unlock()
		return
	}
	f := r.atEnd[last]
	r.atEnd = r.atEnd[:last]
	r.mu.Unlock()
	defer r.cleanUp()
	f()
}

// Context implements [testing.TB].
func (r *trial) Context() context.Context { return r.ctx }

// Cleanup implements [testing.TB].
func (r *trial) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atEnd = append(r.atEnd, f)
}

// say logs, unless the run has ended without the goroutine that still speaks.
func (r *trial) say(text string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.TB.Log(text)
	}
}

// Log implements [testing.TB].
func (r *trial) Log(args ...any) {
	r.Helper()
	r.say(fmt.Sprint(args...))
}

// Logf implements [testing.TB].
func (r *trial) Logf(format string, args ...any) {
	r.Helper()
	r.say(fmt.Sprintf(format, args...))
}

// Error implements [testing.TB].
func (r *trial) Error(args ...any) {
	r.Helper()
	r.say(fmt.Sprint(args...))
	r.Fail()
}

// Errorf implements [testing.TB].
func (r *trial) Errorf(format string, args ...any) {
	r.Helper()
	r.say(fmt.Sprintf(format, args...))
	r.Fail()
}

// Fatal implements [testing.TB].
func (r *trial) Fatal(args ...any) {
	r.Helper()
	r.say(fmt.Sprint(args...))
	r.FailNow()
}

// Fatalf implements [testing.TB].
func (r *trial) Fatalf(format string, args ...any) {
	r.Helper()
	r.say(fmt.Sprintf(format, args...))
	r.FailNow()
}

// Fail implements [testing.TB].
func (r *trial) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

// FailNow implements [testing.TB].
func (r *trial) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *trial) isFinal() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.final
}

// Failed implements [testing.TB].
func (r *trial) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Skip implements [testing.TB].
func (r *trial) Skip(args ...any) {
	r.Helper()
	r.say(fmt.Sprint(args...))
	r.SkipNow()
}

// Skipf implements [testing.TB].
func (r *trial) Skipf(format string, args ...any) {
	r.Helper()
	r.say(fmt.Sprintf(format, args...))
	r.SkipNow()
}

// SkipNow implements [testing.TB].
func (r *trial) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

// Skipped implements [testing.TB].
func (r *trial) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}
