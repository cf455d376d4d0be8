package controlroom

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A command that takes long, as the start of an instance may, has a response before the page gives up. It goes on, and says what failed.
func TestCommandRespondsInTime(t *testing.T) {
	for _, c := range []struct {
		takes  time.Duration
		err    error
		status int
		within time.Duration
		says   string
	}{
		{takes: time.Second, status: http.StatusNoContent, within: time.Second},
		{takes: time.Second, err: conflict{errors.New("it runs")}, status: http.StatusConflict, within: time.Second},
		{takes: time.Minute, status: http.StatusAccepted, within: answerWithin},
		{takes: time.Minute, err: errors.New("it broke"), status: http.StatusAccepted, within: answerWithin, says: "/lab/unpaid: it broke\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			r := &Room{Config: Config{Out: &said}}
			began, response := time.Now(), httptest.NewRecorder()
			r.command(func(*http.Request) error { time.Sleep(c.takes); return c.err }).ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/lab/unpaid", nil))
			if took := time.Since(began); response.Code != c.status || took != c.within {
				t.Errorf("%+v: status %d after %v", c, response.Code, took)
			}
			r.tasks.Wait()
			if said.String() != c.says || time.Since(began) != c.takes {
				t.Errorf("%+v: says %q after %v", c, said.String(), time.Since(began))
			}
		})
	}
}
