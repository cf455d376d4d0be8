package deployments_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	compose "github.com/compose-spec/compose-go/v2/types"
)

// load reads the compose file as docker compose does, with the variables of files and some profiles.
func load(t *testing.T, variables []string, profiles ...string) *compose.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"docker-compose.yml"}, cli.WithEnvFiles(variables...), cli.WithDotEnv, cli.WithDefaultProfiles(profiles...))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// services returns the names of what a command starts.
func services(p *compose.Project) []string { return slices.Sorted(maps.Keys(p.Services)) }

// TestComposeStartsWhatTheFirstAnswerNeeds: at most six services, whose limits of memory are 2.5 GB together.
func TestComposeStartsWhatTheFirstAnswerNeeds(t *testing.T) {
	t.Parallel()
	p := load(t, nil)
	if got, want := services(p), []string{"haproxy", "mariadb", "migrate", "redis", "shop"}; !slices.Equal(got, want) {
		t.Errorf("up starts %q, want %q", got, want)
	}
	var limits compose.UnitBytes
	for _, s := range p.Services {
		limits += s.MemLimit * compose.UnitBytes(s.GetScale())
	}
	if limits > 2560<<20 {
		t.Errorf("the limits are %d MB together", limits>>20)
	}
}

// TestComposeProfiles: locks.env starts each lock service whose address it gives the instances. The profiles load and observe add one service each.
func TestComposeProfiles(t *testing.T) {
	t.Parallel()
	base := services(load(t, nil))
	p := load(t, []string{"locks.env"})
	more := slices.DeleteFunc(services(p), func(s string) bool { return slices.Contains(base, s) })
	if want := []string{"etcd", "redlock-1", "redlock-2", "redlock-3", "redlock-4", "redlock-5", "zookeeper"}; !slices.Equal(more, want) {
		t.Errorf("locks.env adds %q, want %q", more, want)
	}
	var known []string
	for _, name := range []string{"SHOP_REDLOCK", "SHOP_ZOOKEEPER", "SHOP_ETCD"} {
		for address := range strings.SplitSeq(*p.Services["shop"].Environment[name], ",") {
			if !strings.Contains(address, "://") {
				address = "//" + address
			}
			at, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			known = append(known, at.Hostname())
		}
		if v := load(t, nil).Services["shop"].Environment[name]; v != nil && *v != "" {
			t.Errorf("without the file, %s is %s", name, *v)
		}
	}
	if slices.Sort(known); !slices.Equal(known, more) {
		t.Errorf("the instances know %q of %q", known, more)
	}
	for _, s := range more {
		if _, waits := p.Services["shop"].DependsOn[s]; !waits {
			t.Errorf("the instances do not wait for %s", s)
		}
	}
	for profile, service := range map[string]string{"load": "k6", "observe": "victoria-metrics"} {
		if got, want := services(load(t, nil, profile)), slices.Sorted(slices.Values(append(slices.Clip(base), service))); !slices.Equal(got, want) {
			t.Errorf("the profile %s starts %q", profile, got)
		}
	}
}
