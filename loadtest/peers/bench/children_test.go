package bench_test

import (
	"os/exec"
	"runtime"
	"testing"

	"example.com/shop/loadtest/peers/bench"
)

func TestChildrenCPUCountsWhatAChildUses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before := bench.ChildrenCPU()
	child := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	for bench.ChildrenCPU() <= before {
		if t.Context().Err() != nil {
			t.Fatal("nothing was counted")
		}
	}
}
