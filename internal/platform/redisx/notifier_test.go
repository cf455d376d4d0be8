package redisx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A holder may be force-released between the notification of its grant and the end of its wait. The notification of that is not lost.
func TestUnreadPushesOfAWaitAreNews(t *testing.T) {
	t.Parallel()
	rdb := redistest.Client(t, testbedtest.Redis(t))
	var news []string
	n := redisx.NewNotifier(rdb, "unread:", time.Minute, func(id, payload string) { news = append(news, id+" "+payload) })
	defer n.Close(t.Context())
	id := n.NewID()
	pushes, leave := n.Join(t.Context(), id)
	if first := <-pushes; first != "" {
		t.Errorf("the subscription begins with %q", first)
	}
	process, _, _ := strings.Cut(id, "-")
	for _, payload := range []string{"7 1", "forced"} {
		if err := rdb.Publish(t.Context(), n.Channels()+process, id+" "+payload).Err(); err != nil {
			t.Fatal(err)
		}
	}
	testbedtest.Eventually(t, "both pushes", func() bool { return len(pushes) == 2 })
	if grant := <-pushes; grant != "7 1" {
		t.Errorf("the grant is %q", grant)
	}
	leave()
	if diff := cmp.Diff([]string{id + " forced"}, news); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
