package testbedtest

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// repeated is how many runs of this process proved nothing; see [Steady].
var repeated atomic.Int32

// Main runs the tests of a package, and fails if they leave goroutines behind. A run that
// failed may, as a test that fails may: where [Steady] has repeated one, nothing is said.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if n := repeated.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "%d runs were repeated: goroutines are not looked for\n", n)
	} else if code == 0 {
		if err := Leaks(options...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Leaks returns which goroutines are left, once they have had the time to end that they need on a busy machine.
func Leaks(options ...goleak.Option) (err error) {
	options = append(options, goleak.IgnoreAnyFunction(
		"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")) // asleep for a second after the client was closed
	for end := time.Now().Add(20 * time.Second); ; {
		if err = goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
