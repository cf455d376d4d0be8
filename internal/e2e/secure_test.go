package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// leaks fails the test if a text has the password of the stores, escaped or not.
func leaks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, part := range []string{"ss/w", "ss%2F", "w:rd", "w%3Ard"} { // of testbedtest.Password
			if strings.Contains(text, part) {
				t.Errorf("the password is in: %s", text)
			}
		}
	}
}

// TestStoresThatDemandTLSAndPasswords sells through stores that accept nothing else. The program shows no password, and
// a mistake in a URL is one line that says what to change. The tests of the clients have each mistake.
func TestStoresThatDemandTLSAndPasswords(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	database, redis := testbedtest.SecureMariaDB(t, c), testbedtest.SecureRedis(t, c)
	etcd, zookeeper := testbedtest.SecureEtcd(t, c), testbedtest.SecureZooKeeper(t, c)
	proxy := testbedtest.StartProxy(t, etcd)
	const user, password = "shop:", testbedtest.EscapedPassword + "@"
	env := map[string]string{
		"SHOP_DATABASE":  "mysql://certified:" + password + database + "?" + c.Both(),
		"SHOP_REDIS":     "rediss://" + user + password + redis + "/0?" + c.Both(),
		"SHOP_ETCD":      "https://" + user + password + proxy.Addr() + "?" + c.Both(),
		"SHOP_ZOOKEEPER": zookeeper + "/chroot?" + c.Both(), "SHOP_ZOOKEEPER_AUTH": user + testbedtest.Password,
	}
	in := launchIn(t, env, builtFor(t), "--log-level", "debug")
	in.listens(t)
	for _, strategy := range []string{"conditional", "redis-cohort", "lua", "etcd", "zookeeper"} {
		in.want(t, http.StatusCreated, http.MethodPut, "/api/v1/skus/"+strategy, `{"on_hand":9,"strategy":"`+strategy+`"}`)
		if a := served(t.Context(), http.DefaultClient, in.url, strategy); a.status != http.StatusCreated {
			t.Errorf("%s: %+v", strategy, a)
		}
	}
	ready := in.want(t, http.StatusOK, http.MethodGet, "/readyz", "")
	if code, out, stderr := call(t, env, "audit"); code != 0 {
		t.Errorf("audit: exit code %d: %s%s", code, out, stderr)
	}
	if code, out, stderr := call(t, env, "doctor"); code != 0 {
		t.Errorf("doctor: exit code %d: %s%s", code, out, stderr)
	} else {
		leaks(t, out, stderr)
	}
	proxy.Refuse()
	served(t.Context(), http.DefaultClient, in.url, "etcd")
	testbedtest.Eventually(t, "the outage of etcd is logged", func() bool { return strings.Contains(in.stderr.String(), "lock service unavailable") })
	in.stop()
	leaks(t, ready, in.stderr.String())

	for name, wrong := range map[string]struct {
		variable, url string
		code          int
		line          string
	}{
		"password of the database":       {"SHOP_DATABASE", "mysql://" + user + "x" + password + database + "?" + c.Server(), 1, "check the user, the password"},
		"no such authority, database":    {"SHOP_DATABASE", "mysql://" + user + password + database + "?tls-ca=missing.pem", 2, "--database: tls-ca: open missing.pem"},
		"Redis without TLS":              {"SHOP_REDIS", "redis://" + user + password + redis, 1, "if and only if the URL has tls-ca=FILE"},
		"another authority, Redis":       {"SHOP_REDIS", "rediss://" + user + password + redis + "?" + other.Server(), 1, "give the authority"},
		"unknown parameter, Redis":       {"SHOP_REDIS", "rediss://" + user + password + redis + "?" + password + "=1", 2, "want redis://"},
		"password of etcd":               {"SHOP_ETCD", "https://" + user + "x" + password + etcd + "?" + c.Both(), 1, "authentication failed"},
		"another authority, etcd":        {"SHOP_ETCD", "https://" + user + password + etcd + "?" + other.Server(), 1, "give the authority"},
		"scheme of etcd":                 {"SHOP_ETCD", "etcd://" + user + password + etcd, 2, "--etcd: want HOST:2379,... or https://"},
		"no certificate, ZooKeeper":      {"SHOP_ZOOKEEPER", zookeeper + "?" + c.Server(), 1, "by tls-cert=FILE and tls-key=FILE"},
		"user of ZooKeeper":              {"SHOP_ZOOKEEPER", user + password + zookeeper, 2, "--zookeeper: want HOST:2181"},
		"a slash in a password, Redlock": {"SHOP_REDLOCK", "redis://u:w:rd/@" + redis, 2, "want URLs like"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusesURL(t, wrong.variable, wrong.url, wrong.code, wrong.line)
		})
	}
}

// refusesURL starts an instance with a wrong URL. The last line of its log is to contain line.
func refusesURL(t *testing.T, variable, url string, wantCode int, line string) {
	t.Helper()
	env := map[string]string{"SHOP_DATABASE": "sqlite:" + filepath.Join(t.TempDir(), "shop.db"), variable: url}
	code, stdout, stderr := call(t, env, "serve", "--listen", "127.0.0.1:0")
	last := stderr[strings.LastIndexByte(strings.TrimSpace(stderr), '\n')+1:]
	if code != wantCode || !strings.Contains(last, line) {
		t.Errorf("exit code %d, want %d and %q: %s", code, wantCode, line, stderr)
	}
	leaks(t, stdout, stderr)
}

// TestWhatIsNotEncrypted: an instance serves plain HTTP, and a database file has the data as it is.
func TestWhatIsNotEncrypted(t *testing.T) {
	t.Parallel()
	url := sqliteURL(t)
	in := start(t, "--database", url)
	in.want(t, http.StatusCreated, http.MethodPut, "/api/v1/skus/a", `{"on_hand":9,"strategy":"conditional"}`)
	in.place(t)
	file := strings.TrimPrefix(url, "sqlite:")
	data, err := os.ReadFile(file)
	log, unread := os.ReadFile(file + "-wal")
	if err != nil || unread != nil {
		t.Fatal(err, unread)
	}
	if !bytes.Contains(append(data, log...), []byte("conditional")) || !strings.HasPrefix(in.url, "http://") {
		t.Errorf("%s, or the file, is encrypted: say so in SECURITY.md", in.url)
	}
}
