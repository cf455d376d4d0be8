package e2e_test

import (
	"net"
	"strings"
	"testing"
)

// A healthy instance that is asked to stop exits with 0, whatever does not respond at the end, and however early it is asked.
func TestStopIsNoFailure(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for name, collector := range map[string]string{"collector is away": "127.0.0.1:1", "collector is silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := launchIn(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + collector}, program, "--database", "sqlite:"+t.TempDir()+"/shop.db")
			in.listens(t)
			in.stop()
			in.stopped(t)
			if !strings.Contains(in.stderr.String(), "not closed in order") {
				t.Errorf("the collector that is gone is not logged: %s", in.stderr)
			}
		})
	}
	t.Run("during the start", func(t *testing.T) {
		t.Parallel()
		redis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer redis.Close()
		in := launch(t, "--database", "sqlite:"+t.TempDir()+"/shop.db", "--redis", "redis://"+redis.Addr().String()+"/0")
		asked, err := redis.Accept() // the start asks what kind of server it is, and waits
		if err != nil {
			t.Fatal(err)
		}
		defer asked.Close()
		in.stop()
		in.stopped(t)
	})
}
