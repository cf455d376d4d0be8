package deployments_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPinAddsDigests runs pin.sh on a copy, with a docker that asks no registry. Each published image gets its digest, and a second
// run with other digests replaces it.
func TestPinAddsDigests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "deployments"), os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	for _, digit := range []string{"1", "2"} {
		docker := "#!/bin/sh\necho sha256:" + strings.Repeat(digit, 64) + "\n"
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o700); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), "bash", "deployments/pin.sh")
		run.Dir, run.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		images := 0
		for _, name := range []string{"Dockerfile", "docker-compose.yml", "kubernetes/overlays/dev/stores.yaml"} {
			text, err := os.ReadFile(filepath.Join(dir, "deployments", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^ *(?:FROM(?: --platform=\S+)?|image:) (\S+:\S+)`).FindAllStringSubmatch(string(text), -1) {
				if strings.HasSuffix(m[1], ":local") {
					continue
				}
				images++
				if !strings.HasSuffix(m[1], "@sha256:"+strings.Repeat(digit, 64)) || strings.Count(m[1], "@") != 1 {
					t.Errorf("%s: %s", name, m[1])
				}
			}
		}
		if images < 10 {
			t.Errorf("only %d images were pinned", images)
		}
	}
}
