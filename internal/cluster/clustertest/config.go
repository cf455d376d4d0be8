package clustertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func configCases() []testCase {
	return []testCase{
		{"DefaultUntilSet", defaultUntilSet},
		{"SetIsSeenByAll", setIsSeenByAll},
		{"ConflictChangesNothing", conflictChangesNothing},
		{"OneOfRacingWritesWins", oneOfRacingWritesWins},
		{"InvalidIsNotWritten", invalidIsNotWritten},
		{"BadValueIsRefused", badValueIsRefused},
		{"UnsetIsTheDefault", unsetIsTheDefault},
		{"WatchIsMerged", watchIsMerged},
		{"LostReplyIsUncertain", lostReplyIsUncertain},
		{"StoreAwayKeepsTheLast", storeAwayKeepsTheLast},
	}
}

// copyOf is the configuration of an instance.
type copyOf struct {
	all      *cluster.Settings
	permits  *cluster.Setting[int]
	pace     *cluster.Setting[time.Duration]
	reported *errorLog
}

// settings returns the configuration of an instance, kept up to date until the test ends.
func settings(t testing.TB, i Instance) *copyOf {
	t.Helper()
	c := &copyOf{reported: &errorLog{}}
	var err error
	if c.all, err = cluster.NewSettings(cluster.SettingsConfig{Store: i.ConfigStore, OnError: c.reported.add}); err != nil {
		t.Fatal(err)
	}
	c.permits, err = cluster.Define(c.all, cluster.Key[int]{
		Name: "permits", Default: 64, Parse: strconv.Atoi,
		Validate: func(n int) error {
			if n < 1 {
				return errors.New("less than 1")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.pace, err = cluster.Define(c.all, cluster.Key[time.Duration]{Name: "pace/of ö", Default: time.Second, Parse: time.ParseDuration})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.all.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return c
}

// has reports whether a value is in force with its version.
func (c *copyOf) has(n int, version int64) func() bool {
	return func() bool {
		got, v := c.permits.Get()
		return got == n && v == version
	}
}

// set writes permits, and fails the test if it cannot.
func (c *copyOf) set(t testing.TB, n int, version int64) int64 {
	t.Helper()
	next, err := c.permits.Set(t.Context(), n, version)
	if err != nil || next <= version {
		t.Fatalf("Set of version %d = %d, %v", version, next, err)
	}
	return next
}

func defaultUntilSet(t testing.TB, h Harness, group string) {
	c := settings(t, h.open(t, group))
	if err := c.all.Load(t.Context()); err != nil {
		t.Error(err)
	}
	if !c.has(64, 0)() {
		t.Error("no default")
	}
	one := c.set(t, 8, 0)
	Wait(t, "the value", c.has(8, one))
	two := c.set(t, 9, one)
	Wait(t, "the value", c.has(9, two))
	if _, err := c.pace.Set(t.Context(), time.Minute, 0); err != nil {
		t.Fatal(err)
	}
	fresh := settings(t, h.open(t, group))
	if err := fresh.all.Load(t.Context()); err != nil {
		t.Error(err)
	}
	Wait(t, "both in another instance", func() bool {
		pace, version := fresh.pace.Get()
		return fresh.has(9, two)() && pace == time.Minute && version > 0
	})
	if all := fresh.all.All(); len(all) != 2 || all[0].Name != "pace/of ö" || all[0].Value != "1m0s" || all[1].Value != "9" || all[1].Stored != two {
		t.Errorf("states %+v", all)
	}
	if reported := c.reported.count(func(error) bool { return true }); reported > 0 {
		t.Errorf("reported of %v", c.reported.all)
	}
}

func setIsSeenByAll(t testing.TB, h Harness, group string) {
	const n = 5
	var all []*copyOf
	for range n {
		all = append(all, settings(t, h.open(t, group)))
	}
	version := all[0].set(t, 99, 0) // the first write is another kind of change
	for _, c := range all {
		Wait(t, "the value everywhere", c.has(99, version))
	}
	var took []time.Duration
	for k := range 5 {
		start := time.Now()
		version = all[k%n].set(t, 100+k, version)
		for _, c := range all {
			Wait(t, "the value everywhere", c.has(100+k, version))
		}
		took = append(took, time.Since(start))
	}
	h.promptly(t, "a setting", took)
}

func conflictChangesNothing(t testing.TB, h Harness, group string) {
	a, b := settings(t, h.open(t, group)), settings(t, h.open(t, group))
	one := a.set(t, 8, 0)
	two := a.set(t, 9, one)
	for _, version := range []int64{0, one, two + 1, -1, 1 << 40} {
		_, err := b.permits.Set(t.Context(), 10, version)
		conflict, ok := errors.AsType[*cluster.ConflictError](err)
		if !ok || !errors.Is(err, cluster.ErrConflict) || conflict.Current != (cluster.Entry{Text: "9", Version: two}) {
			t.Errorf("Set of version %d = %v", version, err)
		}
	}
	if _, err := b.pace.Set(t.Context(), time.Minute, 3); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("Set of a version that never was = %v", err)
	}
	fresh := settings(t, h.open(t, group))
	Wait(t, "the value in another instance", fresh.has(9, two))
	if _, version := fresh.pace.Get(); version != 0 {
		t.Error("a conflict has written something")
	}
}

func oneOfRacingWritesWins(t testing.TB, h Harness, group string) {
	const n, rounds = 4, 5
	var all []*copyOf
	for range n {
		all = append(all, settings(t, h.open(t, group)))
	}
	version := int64(0)
	for range rounds {
		var (
			writing sync.WaitGroup
			wins    atomic.Int64
			won     atomic.Int64
			next    atomic.Int64
		)
		for k, c := range all {
			writing.Go(func() {
				v, err := c.permits.Set(t.Context(), k+1, version)
				switch {
				case err == nil:
					wins.Add(1)
					won.Store(int64(k + 1))
					next.Store(v)
				case !errors.Is(err, cluster.ErrConflict):
					t.Error(err)
				}
			})
		}
		writing.Wait()
		if n := wins.Load(); n > 1 {
			testbedtest.Final(t, "%d writes of one version have succeeded", n)
			t.FailNow()
		}
		if wins.Load() == 0 {
			t.Fatal("no write of one version has succeeded")
		}
		version = next.Load()
		for _, c := range all {
			Wait(t, "the winner everywhere", c.has(int(won.Load()), version))
		}
	}
}

// watchIsMerged has one that is slow, and gets the last of many values.
func watchIsMerged(t testing.TB, h Harness, group string) {
	c := settings(t, h.open(t, group))
	version := c.set(t, 1, 0)
	Wait(t, "the value", c.has(1, version))
	seen := Follow(t, func(ctx context.Context) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for value, version := range c.permits.Watch(ctx) {
				if !yield(fmt.Sprint(value, version), nil) {
					return
				}
			}
		}
	})
	seen.Until(t, "the value", func(got string, _ error) bool { return got == fmt.Sprint(1, version) })
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	steps := 0
	for value := range c.permits.Watch(ctx) {
		if steps++; steps == 1 {
			if value != 1 {
				t.Errorf("the first value is %d", value)
			}
			for n := 2; n <= 10; n++ {
				version = c.set(t, n, version)
				Wait(t, "the value", c.has(n, version))
			}
		}
		if value == 10 {
			break
		}
	}
	if steps != 2 {
		t.Errorf("%d steps", steps)
	}
	seen.Until(t, "the last value", func(got string, _ error) bool { return got == fmt.Sprint(10, version) })
	if _, n, _ := seen.Now(); n > 10 {
		t.Errorf("%d steps for 10 values", n)
	}
}
