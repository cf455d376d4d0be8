package etcdlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestEtcdThatDemandsTLSAndAUser locks at a server that demands TLS, a certificate and a user, who may be the name in the
// certificate. No other client gets a lock, and no error has a password.
func TestEtcdThatDemandsTLSAndAUser(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	server := testbedtest.SecureEtcd(t, c)
	user := "shop:" + testbedtest.EscapedPassword + "@"
	acquire := func(address string) error {
		cli, err := etcdlock.NewClient(address)
		if err != nil {
			return err
		}
		defer cli.Close()
		l, err := etcdlock.New(cli, etcdlock.Config{TTL: 5 * time.Second})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		defer l.Close(ctx)
		lease, err := l.Acquire(ctx, "key")
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	for address, want := range map[string]string{
		"https://" + user + server + ",127.0.0.1:1?" + c.Both(): "",
		"https://" + server + "?" + c.Both():                    "",
		user + server:                                           "whether it demands TLS",
		"https://" + user + server + "?tls=true":                "whether it demands TLS",
		"https://" + user + server + "?" + other.Both():         "whether it demands TLS",
		"https://" + user + server + "?" + c.Server():           "whether it demands TLS",
		"https://shop:wrong@" + server + "?" + c.Both():         "authentication failed, invalid user ID or password",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				err := acquire(address)
				if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ss/w")) {
					t.Errorf("%s: %v, want %q", address, err, want)
				}
			})
		})
	}
}
