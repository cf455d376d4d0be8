package redisclient_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/storeurl"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

const user = "shop:" + testbedtest.EscapedPassword + "@"

// TestRedisThatDemandsTLS uses a server, one that a sentinel names, and a cluster of one, that demand TLS, a certificate and
// a user. A mistake in the URL has a hint.
func TestRedisThatDemandsTLS(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	alone := testbedtest.SecureRedis(t, c)
	cluster := testbedtest.SecureRedis(t, c, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	sentinel := testbedtest.SecureSentinel(t, c, alone) + "/shop"
	slots, err := redisclient.New("rediss://" + user + cluster + "?" + c.Both())
	if err != nil {
		t.Fatal(err)
	}
	defer slots.Close()
	if err := slots.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testbedtest.Eventually(t, "the cluster is complete", func() bool { return slots.Set(t.Context(), "k", 1, 0).Err() == nil })
	for url, want := range map[string]string{
		"rediss://" + user + alone + "?" + c.Both():                 "",
		"redis://" + user + alone + "/1?" + c.Both():                "",
		"rediss+cluster://" + user + cluster + "?" + c.Both():       "",
		"rediss+sentinel://" + user + sentinel + "?" + c.Both():     "",
		"redis+sentinel://" + user + sentinel:                       "has TLS at this port if and only if",
		"rediss+sentinel://" + user + sentinel + "?" + other.Both(): "give the authority",
		"rediss+sentinel://" + user + sentinel + "?" + c.Server():   "by tls-cert=FILE and tls-key=FILE",
		"rediss+sentinel://shop:wrong@" + sentinel + "?" + c.Both(): "WRONGPASS",
		"redis://" + user + alone:                                   "has TLS at this port if and only if",
		"redis+cluster://" + user + cluster:                         "has TLS at this port if and only if",
		"rediss://" + user + alone:                                  "give the authority",
		"rediss://" + user + alone + "?" + other.Server():           "give the authority",
		"rediss+cluster://" + user + cluster + "?" + other.Both():   "give the authority",
		"rediss://" + user + alone + "?" + c.Server():               "by tls-cert=FILE and tls-key=FILE",
		"rediss://" + user + alone + "?" + c.With(other):            "by tls-cert=FILE and tls-key=FILE",
		"rediss://shop:wrong@" + alone + "?" + c.Both():             "WRONGPASS",
		strings.Replace(testbedtest.Redis(t), "redis", "rediss", 1): "has TLS at this port if and only if",
	} {
		rdb, err := redisclient.New(url)
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		err = rdb.Set(t.Context(), "key", "value", 0).Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error()+storeurl.Hint(err), want)) {
			t.Errorf("%s: %v, %q, want %q", url, err, storeurl.Hint(err), want)
		}
	}
}

// TestSentinelsWithAPasswordOfTheirOwn asks sentinels that demand another user than their master does.
func TestSentinelsWithAPasswordOfTheirOwn(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := testbedtest.StartSentinel(t)
		for _, node := range s.Sentinels() {
			do(t, node.Addr(), "ACL", "SETUSER", "watcher", "on", ">"+testbedtest.Password, "~*", "&*", "+@all")
			do(t, node.Addr(), "ACL", "SETUSER", "default", "off")
		}
		base := "redis+sentinel://" + strings.Join(s.SentinelAddrs(), ",") + "/" + s.MasterName()
		for params, ok := range map[string]bool{
			"?sentinel-user=watcher&sentinel-password=" + testbedtest.EscapedPassword: true,
			"?sentinel-user=watcher&sentinel-password=wrong":                          false, "": false,
		} {
			rdb, err := redisclient.New(base + params)
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			if err := rdb.Set(t.Context(), "key", "value", 0).Err(); (err == nil) != ok {
				t.Errorf("%q: %v", params, err)
			}
		}
	})
}

func do(t testing.TB, addr string, command ...any) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	if err := rdb.Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
}
