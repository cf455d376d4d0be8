package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
)

func newSettings(t *testing.T, values cluster.Fixed) *cluster.Settings {
	t.Helper()
	s, err := cluster.NewSettings(cluster.SettingsConfig{Store: values})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDefineChecks(t *testing.T) {
	t.Parallel()
	s := newSettings(t, nil)
	positive := func(n int) error {
		if n < 1 {
			return errors.New("less than 1")
		}
		return nil
	}
	for name, key := range map[string]cluster.Key[int]{
		"no name":     {Parse: strconv.Atoi},
		"a bad name":  {Name: "a\nb", Parse: strconv.Atoi},
		"no Parse":    {Name: "a"},
		"bad default": {Name: "a", Parse: strconv.Atoi, Validate: positive},
	} {
		if _, err := cluster.Define(s, key); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := cluster.Define(s, cluster.Key[int]{Name: "a", Parse: strconv.Atoi}); err != nil {
		t.Error(err)
	}
	if _, err := cluster.Define(s, cluster.Key[time.Duration]{Name: "a", Parse: time.ParseDuration}); err == nil {
		t.Error("a name is accepted twice")
	}
	if _, err := cluster.NewSettings(cluster.SettingsConfig{}); err == nil {
		t.Error("no store is accepted")
	}
}

// TestFixed has values of types that write themselves otherwise than fmt does, and bad
// ones: those that are good count.
func TestFixed(t *testing.T) {
	t.Parallel()
	s := newSettings(t, cluster.Fixed{"level": "debug", "permits": "many", "long": strings.Repeat("1", 5000), "other": "x"})
	level, err := cluster.Define(s, cluster.Key[slog.Level]{
		Name: "level", Default: slog.LevelInfo,
		Parse:  func(text string) (l slog.Level, err error) { return l, l.UnmarshalText([]byte(text)) },
		Format: func(l slog.Level) string { return strings.ToLower(l.String()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	permits, err := cluster.Define(s, cluster.Key[int]{Name: "permits", Default: 64, Parse: strconv.Atoi})
	if err != nil {
		t.Fatal(err)
	}
	long, err := cluster.Define(s, cluster.Key[string]{Name: "long", Default: "short", Parse: func(text string) (string, error) { return text, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is the state that is reported, and not the change
		if err := s.Load(t.Context()); !errors.Is(err, cluster.ErrInvalid) || !strings.Contains(err.Error(), `permits = "many"`) {
			t.Errorf("Load = %v", err)
		}
	}
	if l, version := level.Get(); l != slog.LevelDebug || version != 1 {
		t.Errorf("level %v, version %d", l, version)
	}
	if n, version := permits.Get(); n != 64 || version != 0 {
		t.Errorf("permits %v, version %d", n, version)
	}
	if text, _ := long.Get(); text != "short" {
		t.Errorf("a value of %d bytes is accepted", len(text))
	}
	if _, err := level.Set(t.Context(), slog.LevelWarn, 1); !errors.Is(err, cluster.ErrReadOnly) {
		t.Errorf("Set = %v", err)
	}
	if _, err := level.Set(t.Context(), slog.Level(3), 1); !errors.Is(err, cluster.ErrReadOnly) { // "info+3" can be read
		t.Errorf("Set = %v", err)
	}
	states := s.All()
	if len(states) != 3 || states[0].Name != "level" || states[0].Value != "debug" || states[2].Stored != 1 || states[2].Version != 0 {
		t.Errorf("states %+v", states)
	}
}

// TestLoadEndsWithItsContext and what is set at the beginning has the default.
func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newSettings(t, cluster.Fixed{"a": "1"})
	a, err := cluster.Define(s, cluster.Key[int]{Name: "a", Parse: strconv.Atoi})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errAway)
	if err := s.Load(ctx); !errors.Is(err, errAway) {
		t.Errorf("Load = %v", err)
	}
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
	if n, version := a.Get(); n != 0 || version != 0 {
		t.Errorf("%d, version %d", n, version)
	}
	for range a.Watch(ctx) {
		t.Error("a sequence goes on after the end of its context")
	}
}
