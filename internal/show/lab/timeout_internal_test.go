package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A program that starts slowly shows a busy machine: the lab gets more time, places fewer orders, and says so.
func TestLabOnABusyMachineHasMoreTimeAndMeasuresLess(t *testing.T) {
	t.Parallel()
	slow := filepath.Join(t.TempDir(), "shop")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nsleep 0.15\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var left time.Duration
	size := 0
	l := Lab{Name: "busy", Script: func(ctx context.Context, r *Run) {
		until, _ := ctx.Deadline()
		left, size = time.Until(until), r.Size(1, 2)
	}}
	result := l.Do(t.Context(), Config{Executable: slow})
	if left < 2*labTimeout || left > slowest*labTimeout || size != 1 {
		t.Errorf("the lab has %v, and size %d; want 1m to 2m30s, and the small size", left, size)
	}
	if len(result.Steps) == 0 || !strings.Contains(result.Steps[0].Text, "The lab measures less, as with --small") {
		t.Errorf("steps %v do not say that the lab measures less", result.Steps)
	}
}

func TestLabThatDoesNotEndIsInconclusiveAfter30Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := false
		l := Lab{Name: "endless", Script: func(ctx context.Context, r *Run) {
			r.Effect(true, "the effect was seen")
			r.Cure(true, "the cure worked")
			r.Defer(func() error {
				closed = true
				return nil
			})
			await(ctx, "the end", func() bool { return false })
		}}
		began := time.Now()
		result := l.Do(t.Context(), Config{})
		if took := time.Since(began); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("the run took %v, want 30s", took)
		}
		if result.Verdict != Inconclusive || !strings.Contains(result.Reason, "30s: --small") || !closed {
			t.Errorf("%s: %s, closed %t; want inconclusive after 30s, and the run closed", result.Verdict, result.Reason, closed)
		}
	})
}
