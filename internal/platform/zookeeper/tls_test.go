package zookeeper_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// TestZooKeeperThatDemandsTLS writes at a server that demands TLS and a certificate. Otherwise no session begins, and the
// error says what to change.
func TestZooKeeperThatDemandsTLS(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	server := testbedtest.SecureZooKeeper(t, c)
	for address, want := range map[string]string{
		server + "?" + c.Both():                   "",
		server:                                    "if and only if the URL has tls-ca=FILE",
		server + "?tls=true":                      "give the authority",
		server + "?" + other.Both():               "give the authority",
		server + "?" + c.Server():                 "by tls-cert=FILE and tls-key=FILE",
		server + "?" + c.With(other):              "by tls-cert=FILE and tls-key=FILE",
		testbedtest.ZooKeeper(t) + "?" + c.Both(): "if and only if the URL has tls-ca=FILE",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			cfg, err := zookeeper.Address(address)
			check(t, err)
			cfg.Auth = "shop:" + testbedtest.Password
			s, err := zookeeper.Open(t.Context(), cfg)
			check(t, err)
			defer closeInTime(t, s)
			testbedtest.Eventually(t, "an answer with "+want, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err = s.Confirm(ctx)
				return want == "" && err == nil || want != "" && err != nil && strings.Contains(err.Error(), want)
			})
			if err != nil && strings.Contains(err.Error(), testbedtest.Password) {
				t.Errorf("the password is in: %v", err)
			}
		})
	}
}

// TestChroot: all nodes are below the path in the address.
func TestChroot(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr, root := testbedtest.ZooKeeper(t), dir(t)
		cfg, err := zookeeper.Address(addr + root)
		check(t, err)
		s, err := zookeeper.Connect(t.Context(), cfg)
		check(t, err)
		t.Cleanup(func() { closeInTime(t, s) })
		check(t, s.Confirm(t.Context()))
		check(t, s.Create(t.Context(), "/node", []byte("here")))
		if data, _, err := plain(t, addr).Get(root + "/shop/node"); err != nil || string(data) != "here" {
			t.Errorf("%q, %v", data, err)
		}
		check(t, s.Delete(t.Context(), "/node", -1))
	})
	for _, address := range []string{"", "h", "h:1/a?x=1", "u:p@h:1", "zk://h:1"} {
		if _, err := zookeeper.Address(address); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
}
