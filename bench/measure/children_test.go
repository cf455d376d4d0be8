package measure_test

import (
	"os/exec"
	"runtime"
	"testing"

	"example.com/shop/bench/measure"
)

func TestChildrenCPUCountsWhatAChildUses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before := measure.ChildrenCPU()
	child := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	for measure.ChildrenCPU() <= before {
		if t.Context().Err() != nil {
			t.Fatal("nothing was counted")
		}
	}
}
