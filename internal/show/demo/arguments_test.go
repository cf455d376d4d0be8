package demo_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/show/demo"
)

// Everybody on a machine may read the arguments of its processes.
func TestDemoShowsNoPasswordInArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, received := filepath.Join(dir, "serve"), filepath.Join(dir, "received")
	text := "#!/bin/sh\necho \"arguments: $@\" >>'" + received + "'\nenv | grep ^SHOP_ >>'" + received + "'\nexit 1\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := demo.Run(t.Context(), demo.Config{
		Executable: script, Strategies: []string{"naive"}, Out: io.Discard,
		Database: "mysql://shop:secret@127.0.0.1:1/shop", Redis: "redis://:secret@127.0.0.1:1/0",
	})
	if err == nil {
		t.Fatal("the demo ran without an instance")
	}
	lines, err := os.ReadFile(received)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		if strings.HasPrefix(line, "arguments: ") && strings.Contains(line, "secret") {
			t.Errorf("a password in the %s", line)
		}
	}
	if !strings.Contains(string(lines), "SHOP_DATABASE=mysql://shop:secret@") || !strings.Contains(string(lines), "SHOP_REDIS=redis://:secret@") {
		t.Errorf("the instance does not know where the stores are: %s", lines)
	}
}
