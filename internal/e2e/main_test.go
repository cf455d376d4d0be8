package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/testbed/testbedtest"
)

// program is the shop, built as this test is: with the race detector if the test has it.
var program string

// raceFlags are RACE of the Makefile, so that nothing is compiled twice.
var raceFlags = []string{
	"-race", "-gcflags=modernc.org/...=-race=false", "-gcflags=github.com/yuin/gopher-lua/...=-race=false",
	"-gcflags=github.com/go-zookeeper/zk/...=-race=false",
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) (code int) {
	folder, err := os.MkdirTemp("", "shop-e2e-")
	if err == nil {
		defer os.RemoveAll(folder)
		program = filepath.Join(folder, "shop")
		var flags []string
		if withRace {
			flags = raceFlags
		}
		err = build(program, flags...)
	}
	if err == nil {
		code = m.Run()
		err = testbedtest.Leaks()
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// build builds the shop.
func build(to string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", to, "example.com/shop/cmd/shop")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// product builds the shop as its users have it: with the race detector a demo takes four times as long.
var product = sync.OnceValues(func() (string, error) {
	if !withRace {
		return program, nil
	}
	fast := program + "-product"
	return fast, build(fast)
})

// measured is for a test whose figures depend on the machine. It runs alongside others. At full size it is alone.
func measured(t *testing.T) {
	t.Helper()
	testbedtest.Measured(t)
	if testbedtest.Size(0, 1) == 1 {
		alone(t)
	}
}

// alone is for a test during which no other test may run, so it is not parallel. Its instances are those that users
// have.
func alone(t *testing.T) {
	t.Helper()
	fast, err := product()
	if err != nil {
		t.Fatal(err)
	}
	usual := program
	program = fast
	t.Cleanup(func() { program = usual })
}
