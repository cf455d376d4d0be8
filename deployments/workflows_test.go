package deployments_test

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflowsRunTheChecks: each change runs .ci/run, and each week make soak. make lint looks for mistakes in the workflows.
func TestWorkflowsRunTheChecks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ on, run string }{"ci": {"pull_request", ".ci/run"}, "soak": {"schedule", "make soak"}} {
		var workflow struct {
			On   map[string]any `json:"true"` // YAML takes the key on for true
			Jobs map[string]struct{ Steps []struct{ Run string } }
		}
		read(t, "../.github/workflows/"+name+".yml", &workflow)
		if _, ok := workflow.On[want.on]; !ok {
			t.Errorf("%s does not run on %s", name, want.on)
		}
		if steps := workflow.Jobs[name].Steps; steps[len(steps)-1].Run != want.run {
			t.Errorf("%s does not run %s", name, want.run)
		}
	}
}

// read decodes a file of YAML.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestDependabotKnowsEveryModule of Go, and every package.json.
func TestDependabotKnowsEveryModule(t *testing.T) {
	t.Parallel()
	var config struct {
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	read(t, "../.github/dependabot.yml", &config)
	known := map[string][]string{}
	for _, u := range config.Updates {
		known[u.Ecosystem] = append(u.Directories, u.Directory)
	}
	for file, ecosystem := range map[string]string{"go.mod": "gomod", "package.json": "npm"} {
		list := exec.CommandContext(t.Context(), "git", "ls-files", file, "*/"+file)
		list.Dir = ".."
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for each := range strings.FieldsSeq(string(out)) {
			if !slices.Contains(known[ecosystem], path.Join("/", path.Dir(each))) {
				t.Errorf("dependabot does not know %s", each)
			}
		}
	}
}
