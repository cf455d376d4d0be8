package lab

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
		if result.Verdict != Inconclusive || !strings.Contains(result.Reason, "30s") || !closed {
			t.Errorf("%s: %s, closed %t; want inconclusive after 30s, and the run closed", result.Verdict, result.Reason, closed)
		}
	})
}
