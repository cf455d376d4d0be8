package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The alerts fire at the times of rules_test.yml, by promtool's clock, and no other alert does.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("SHOP_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		c := exec.CommandContext(t.Context(), promtool, args...)
		c.Dir = files
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v: %s", args, err, out)
		}
	}
}

// Each alert leads to a section of docs/how-to/alerts.md, and each section with the name of an alert is that of one.
func TestAlertsHaveSections(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(files, "rules.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(files, "../../docs/how-to/alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts[r.Alert] = true
			if got, want := r.Annotations["runbook"], "docs/how-to/alerts.md#"+strings.ToLower(r.Alert); got != want {
				t.Errorf("%s leads to %q, want %s", r.Alert, got, want)
			}
			if !strings.Contains(string(page), "\n## "+r.Alert+"\n") {
				t.Errorf("the page has no section %s", r.Alert)
			}
		}
	}
	if got := strings.Count(string(page), "\n## Shop"); got != len(alerts) {
		t.Errorf("the page has sections for %d alerts of %d", got, len(alerts))
	}
}
