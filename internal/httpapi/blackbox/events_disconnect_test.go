package blackbox_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestDisconnectedListenersAreRemoved: half of many clients stop reading without a notice. They are disconnected, and
// their goroutines, descriptors and places are released. The others receive everything.
func TestDisconnectedListenersAreRemoved(t *testing.T) {
	n, patience, pause := 100, 2*time.Second, 50*time.Millisecond
	if os.Getenv("SHOP_TEST_SOAK") != "" {
		n, patience, pause = 1000, 10*time.Second, 500*time.Millisecond
	}
	for ; !vanish(t, n, patience, pause); patience *= 2 {
		if patience > time.Minute {
			t.Fatal("the process does not run for as long as a listener may take")
		}
	}
}

// vanish has half of n clients vanish from a server that gives each of them so much time. judged is false
// if this process was paused for most of that: then those who read cannot be notified from those who do not.
func vanish(t *testing.T, n int, patience, pause time.Duration) (judged bool) {
	t.Helper()
	still := testbedtest.DetectStalls(t)
	s := newStationWith(t, nil, events.FeedConfig{Buffer: 1 << 17}, heartbeat, patience)
	client := streamClient(t)
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
	var alive, vanished []opened
	for i := range n {
		answer := s.open(t, client, "", "?types=order", "")
		if i%2 == 0 {
			alive = append(alive, answer)
		} else {
			vanished = append(vanished, answer)
		}
	}
	if got := s.feed.Stats().Listeners; got != n {
		t.Fatalf("%d listeners", got)
	}
	var group sync.WaitGroup
	var cutOff atomic.Int64
	counts := make([]int, len(alive))
	for i, answer := range alive {
		group.Go(func() {
			for m, err := range events.Messages(answer.body) {
				switch {
				case err != nil:
					cutOff.Add(1)
					return
				case strings.Contains(m.Data, lastOrder):
					return
				case m.Kind == "order":
					counts[i]++
				case m.Kind == "reset" && counts[i] > 0:
					t.Errorf("a listener that reads was told %s", m.Data)
				}
			}
		})
	}
	published := 0
	testbedtest.Eventually(t, "half of them are cut off", func() bool {
		for range 10 {
			s.Order(liveOrder(fmt.Sprintf("00000000-0000-7000-9000-%012d", published), strings.Repeat("c", 64)))
			published++
		}
		<-time.After(pause) // or those who read have no time to
		return s.feed.Stats().Listeners <= len(alive)
	})
	s.Order(liveOrder(lastOrder, "c1"))
	group.Wait()
	judged = cutOff.Load() == 0 || still.Longest() < patience/2
	if judged && cutOff.Load() > 0 {
		t.Errorf("%d listeners that read were cut off", cutOff.Load())
	}
	for i, got := range counts {
		if !judged {
			break
		}
		if got != published {
			t.Errorf("listener %d received %d of %d", i, got, published)
		}
	}
	t.Logf("%d listeners, of which %d vanished; %d events each", n, len(vanished), published)
	for _, answer := range append(alive, vanished...) {
		_ = answer.body.Close()
	}
	testbedtest.Eventually(t, "what they cost is given back", func() bool {
		return s.feed.Stats().Listeners == 0 && runtime.NumGoroutine() <= goroutines+5 && openFiles(t) <= descriptors+5
	})
	return judged
}

// openFiles counts the descriptors of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skipf("descriptors cannot be counted: %v", err)
	}
	return len(files)
}
