package main

import (
	"runtime/debug"
	"testing"
)

// TestVersionNamesTheCommit of a program that was built in a checkout.
func TestVersionNamesTheCommit(t *testing.T) {
	t.Parallel()
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "4acc8bf0"}, {Key: "vcs.time", Value: "2026-11-27T23:01:57Z"}}
	for want, info := range map[string]*debug.BuildInfo{
		"v0.2.0":  {Main: debug.Module{Version: "v0.2.0"}}, // go run MODULE/cmd/shop@v0.2.0
		"unknown": {},
		"v0.2.0 (commit 4acc8bf0, 2026-11-27T23:01:57Z)": {Main: debug.Module{Version: "v0.2.0"}, Settings: commit},
		"v0.2.0 (commit 4acc8bf0, 2026-11-27T23:01:57Z, with changes)": {
			Main: debug.Module{Version: "v0.2.0"}, Settings: append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
		},
	} {
		if got := described(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
