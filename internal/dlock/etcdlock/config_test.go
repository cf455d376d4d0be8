package etcdlock_test

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		cli := client(t, "127.0.0.1:1")
		for name, cfg := range map[string]etcdlock.Config{
			"negative TTL": {TTL: -time.Second}, "prefix without a slash": {Prefix: "locks"},
		} {
			if _, err := etcdlock.New(cli, cfg); err == nil {
				t.Errorf("%s: New accepts it", name)
			}
		}
		for _, address := range []string{"", "127.0.0.1", "http://127.0.0.1:2379", "u:%zz@127.0.0.1:2379"} {
			if _, err := etcdlock.NewClient(address); err == nil || strings.Contains(err.Error(), "zz") {
				t.Errorf("NewClient(%q) = %v", address, err)
			}
		}
		named, err := etcdlock.NewClient("u:p%40ss@" + testbedtest.Etcd(t) + ",127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		defer named.Close()
		if named.Username != "u" || named.Password != "p@ss" || len(named.Endpoints()) != 2 {
			t.Errorf("user %q, password %q, endpoints %q", named.Username, named.Password, named.Endpoints())
		}
	})
}
