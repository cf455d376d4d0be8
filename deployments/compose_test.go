package deployments_test

import (
	"maps"
	"net/url"
	"os"
	"regexp"
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

// TestComposeProfiles: locks.env starts each lock service whose address it gives the instances, and observe.env the receiver of their logs. The
// profile load adds one service.
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
	observed := load(t, []string{"observe.env"})
	for name, c := range map[string]struct{ got, more []string }{
		"the profile load":    {services(load(t, nil, "load")), []string{"k6"}},
		"the profile observe": {services(load(t, nil, "observe")), []string{"victoria-logs", "victoria-metrics", "vmalert"}},
		"observe.env":         {services(observed), []string{"victoria-logs", "victoria-metrics", "vmalert"}},
		"both":                {services(load(t, []string{"locks.env", "observe.env"}, "locks", "observe")), slices.Concat(more, []string{"victoria-logs", "victoria-metrics", "vmalert"})},
	} {
		if want := slices.Sorted(slices.Values(slices.Concat(base, c.more))); !slices.Equal(c.got, want) {
			t.Errorf("%s starts %q", name, c.got)
		}
	}
	const logs = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
	if at, err := url.Parse(*observed.Services["shop"].Environment[logs]); err != nil || at.Hostname() != "victoria-logs" || at.Port() != "9428" {
		t.Errorf("with observe.env, logs are sent to %v: %v", at, err)
	}
	if v := load(t, nil).Services["shop"].Environment[logs]; *v != "" {
		t.Errorf("without the file, logs are sent to %s", *v)
	}
}

// TestComposeObserves: each server of the profile observe that another one names is in the stack, and reads files that its image has.
func TestComposeObserves(t *testing.T) {
	t.Parallel()
	image, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, nil, "observe")
	named, files := 0, 0
	for _, name := range []string{"victoria-metrics", "vmalert", "victoria-logs"} {
		for _, arg := range p.Services[name].Command {
			if m := regexp.MustCompile(`=http://([a-z-]+):(\d+)`).FindStringSubmatch(arg); m != nil {
				named++
				if check := strings.Join(p.Services[m[1]].HealthCheck.Test, " "); !strings.Contains(check, ":"+m[2]+"/") {
					t.Errorf("%s: %s, which is checked by %s", name, arg, check)
				}
			}
			if m := regexp.MustCompile(`=/etc/observe/(\S+)`).FindStringSubmatch(arg); m != nil {
				files++
				_, stage, _ := strings.Cut(string(image), " AS "+p.Services[name].Build.Target+"\n")
				stage, _, _ = strings.Cut(stage, "\nFROM ")
				if _, err := os.Stat("observe/" + m[1]); err != nil || !strings.Contains(stage, " /etc/observe/"+m[1]) {
					t.Errorf("%s: %s, but the image has %q: %v", name, arg, stage, err)
				}
			}
		}
	}
	if named != 4 || files != 3 {
		t.Errorf("%d servers and %d files are named", named, files)
	}
}
