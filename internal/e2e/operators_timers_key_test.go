package main

import (
	"strings"
	"testing"
)

// An instance that asks for keys asks for an admin's on its admin listener too, and shop timers
// takes it from the environment.
func TestTimersWithAKey(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	_, admin := newKey(t, database, "--admin")
	_, customer := newKey(t, database, "--customer", "ann")
	r := start(t, "--database", database, "--auth", "keys")
	list := []string{"timers", "list", "--url", r.admin(t)}
	for key, want := range map[string]int{"": 1, customer: 1, admin: 0} {
		code, _, stderr := call(t, func(name string) string {
			if name == "SHOP_KEY" {
				return key
			}
			return ""
		}, list...)
		if code != want || want == 1 && !strings.Contains(stderr, "shop keys create --admin") || key != "" && strings.Contains(stderr, key) {
			t.Errorf("exit code %d, want %d: %s", code, want, stderr)
		}
	}
}
