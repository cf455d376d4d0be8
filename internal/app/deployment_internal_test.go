package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// deployment is what the tests want to know of deployments/docker-compose.yml.
type deployment struct {
	Services map[string]struct {
		Command     []string
		Environment map[string]string
		Restart     string
		Entrypoint  []string
		Profiles    []string
		Ports       []string
		Volumes     []string
		MemLimit    string        `yaml:"mem_limit"`
		Grace       time.Duration `yaml:"stop_grace_period"`
		Build       struct{ Args map[string]string }
		Healthcheck struct{ Interval, Timeout time.Duration }
	}
}

func readDeployment(t *testing.T) (d deployment) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(file(t, "docker-compose.yml")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// file returns a file of the deployment.
func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deployments", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDeploymentRestarts: a machine that reboots ends all containers in order, and starts those again whose policy says so.
func TestDeploymentRestarts(t *testing.T) {
	t.Parallel()
	jobs := []string{"migrate", "demo", "k6"}
	for name, s := range readDeployment(t).Services {
		if slices.Contains(jobs, name) {
			if s.Restart != "no" {
				t.Errorf("%s is started again after it has ended: %q", name, s.Restart)
			}
			continue
		}
		if s.Restart != "unless-stopped" {
			t.Errorf("%s stays down after a reboot: %q", name, s.Restart)
		}
		if s.Healthcheck.Interval < 5*time.Second || s.Healthcheck.Interval > 10*time.Second {
			t.Errorf("%s is checked every %v", name, s.Healthcheck.Interval)
		}
	}
}

// TestDeploymentEndsWithItsAddress: the balancer, which starts last, prints where the page is, as make up does.
func TestDeploymentEndsWithItsAddress(t *testing.T) {
	t.Parallel()
	if got := strings.Join(readDeployment(t).Services["haproxy"].Entrypoint, " "); !strings.Contains(got, "http://127.0.0.1:${SHOP_PORT:-8080}/") {
		t.Errorf("the balancer starts by %q", got)
	}
	if got := file(t, "../Makefile"); !strings.Contains(got, "up --build --detach --wait\n\t@echo \"The control room: http://127.0.0.1:$${SHOP_PORT:-8080}/\"\n") {
		t.Error("make up does not end with the address of the page")
	}
}

// TestDeploymentIsBounded: no service takes all memory, is published on every network, or starts a sale that
// oversells. None reads files of the checkout that another user may not read.
func TestDeploymentIsBounded(t *testing.T) {
	t.Parallel()
	d := readDeployment(t)
	for name, s := range d.Services {
		if s.MemLimit == "" {
			t.Errorf("%s has no memory limit", name)
		}
		for _, v := range s.Volumes {
			if strings.HasPrefix(v, ".") {
				t.Errorf("%s mounts %s", name, v)
			}
		}
		for _, p := range s.Ports {
			if p != map[string]string{"haproxy": "127.0.0.1:${SHOP_PORT:-8080}:8080", "victoria-metrics": "127.0.0.1:${SHOP_METRICS_PORT:-8428}:8428", "victoria-logs": "127.0.0.1:${SHOP_LOGS_PORT:-9428}:9428"}[name] {
				t.Errorf("%s publishes %s", name, p)
			}
		}
	}
	for name, profile := range map[string]string{"demo": "demo", "k6": "load", "victoria-metrics": "observe", "vmalert": "observe", "victoria-logs": "observe"} {
		if got := d.Services[name].Profiles; !slices.Equal(got, []string{profile}) {
			t.Errorf("%s is in the profiles %v, want %s", name, got, profile)
		}
	}
	if got := d.Services["mariadb"].Environment; got["MARIADB_RANDOM_ROOT_PASSWORD"] != "" {
		t.Error("MariaDB prints the password of root into its log")
	}
	graceCovers(t, d.Services["shop"].Grace)
	if !slices.Contains(d.Services["mariadb"].Command, "--max-connections=700") || !strings.Contains(file(t, "haproxy.cfg"), "server-template shop- 16 ") {
		t.Error("16 instances with 38 connections each need more than 608")
	}
}

// graceCovers fails the test unless grace is longer than an instance takes to stop.
func graceCovers(t *testing.T, grace time.Duration) {
	t.Helper()
	// The longest stop: the queue drains alongside the requests.
	if took := drainWait + stopTimeout + cutTimeout + timersDrain + 5*time.Second; grace < took+10*time.Second {
		t.Errorf("an instance that takes %v to stop is killed after %v", took, grace)
	}
}

// TestKubernetesWaitsForTheDrain: the period counts from before the sleep.
func TestKubernetesWaitsForTheDrain(t *testing.T) {
	t.Parallel()
	var d struct {
		Spec struct {
			Template struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Lifecycle struct {
							PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(file(t, "kubernetes/base/deployment.yaml")), &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	sleep := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds
	if sleep == 0 {
		t.Error("an instance stops while clients are still sent to it")
	}
	graceCovers(t, time.Duration(pod.Grace-sleep)*time.Second)
}

// TestImageIsWhatMakeBuilds compares the Dockerfile with the Makefile.
func TestImageIsWhatMakeBuilds(t *testing.T) {
	t.Parallel()
	makefile, image := file(t, "../Makefile"), file(t, "Dockerfile")
	tags := regexp.MustCompile(`(?m)^TAGS +:= (\S+)$`).FindStringSubmatch(makefile)
	if tags == nil || !strings.Contains(image, "-tags "+tags[1]+" ") {
		t.Errorf("the image is built without the tags %v of the Makefile", tags)
	}
	for name, text := range map[string]string{"Makefile": makefile, "Dockerfile": image} {
		if !strings.Contains(text, "-X main.release=$") {
			t.Errorf("%s does not say which version it builds", name)
		}
	}
	for name, module := range map[string]string{"victoria-metrics": "VictoriaMetrics", "vmalert": "VictoriaMetrics", "victoria-logs": "VictoriaLogs"} {
		version := regexp.MustCompile(`VictoriaMetrics/` + module + ` (v\S+)`).FindStringSubmatch(file(t, "../tools/observe/go.mod"))
		if version == nil || !regexp.MustCompile("victoriametrics/"+name+":"+regexp.QuoteMeta(version[1])+"[ @\n]").MatchString(image+file(t, "docker-compose.yml")) { // @: pinned
			t.Errorf("make observe builds another version than the image of %s: %v", name, version)
		}
	}
	if got := readDeployment(t).Services["shop"].Build.Args["VERSION"]; got != "${SHOP_VERSION:-}" {
		t.Errorf("the version of the image is %q", got)
	}
}
