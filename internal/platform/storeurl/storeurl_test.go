package storeurl_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/platform/storeurl"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	u, err := storeurl.Parse("s://u%3A:p@ss%2F:@h,[::1]:2,k:3/p%20q?x=y", "9")
	if err != nil || u.Scheme != "s" || u.User != "u:" || u.Password != "p@ss/:" || u.Path != "p q" || u.Params.Get("x") != "y" || u.TLS != nil {
		t.Errorf("%+v, %v", u, err)
	}
	if want := []string{"h:9", "[::1]:2", "k:3"}; !slices.Equal(u.Hosts, want) {
		t.Errorf("hosts %q, want %q", u.Hosts, want)
	}
	if u, err := storeurl.Parse("h:1,k:2/root", ""); err != nil || u.Scheme != "" || len(u.Hosts) != 2 || u.Path != "root" {
		t.Errorf("without a scheme: %+v, %v", u, err)
	}
	for _, raw := range []string{
		"", "s://", "s://h", "s://h:", "s://:1", "s://h:0", "s://h:65536", "s://h:x", "s://h:1,", "s://h:1#", "s://u:%zz@h:1",
		"s://u:secret/x@h:1", "s://u:sec ret@h:1", "s://h:1?%zz",
	} {
		if _, err := storeurl.Parse(raw, ""); !errors.Is(err, storeurl.ErrForm) || strings.Contains(err.Error(), "ecret") {
			t.Errorf("%s: %v, want %v", raw, err, storeurl.ErrForm)
		}
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                      "",
		"sqlite:shop.db":                        "sqlite:shop.db",
		"redis://h:1/0":                         "redis://h:1/0",
		"redis://u:s@e:c@h:1/0":                 "redis://u:xxxxx@h:1/0",
		"redis://u@h:1/0":                       "redis://u@h:1/0",
		"u:secret@h:1,k:2?tls-ca=f":             "u:xxxxx@h:1,k:2?tls-ca=f",
		"r://h:1/m?tls=true&p=secret&tls-key=f": "r://h:1/m?tls=true&tls-key=f",
	} {
		if got := storeurl.Redacted(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestWrongParametersOfTLS(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	for params, want := range map[string]string{
		"tls=skip-verify":                            "tls: want true",
		"tls-ca=missing.pem":                         "tls-ca: open missing.pem: no such file",
		"tls-ca=" + c.Key:                            "has no certificate in the format PEM",
		"tls-cert=" + c.Cert:                         "tls-cert and tls-key: give both",
		"tls-key=" + c.Key:                           "tls-cert and tls-key: give both",
		"tls-cert=" + c.CA + "&tls-key=" + other.Key: "tls-cert and tls-key: tls: private key does not match",
	} {
		if _, err := storeurl.Parse("s://h:1?"+params, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", params, err, want)
		}
	}
	for raw, want := range map[string]bool{
		"s://h:1": false, "http://h:1": false, "https://h:1": true, "rediss+cluster://h:1": true, "s://h:1?tls=true": true, "s://h:1?" + c.Server(): true,
	} {
		if u, err := storeurl.Parse(raw, ""); err != nil || (u.TLS != nil) != want {
			t.Errorf("%s: TLS %v, %v; want %v", raw, u.TLS != nil, err, want)
		}
	}
}

// A server that demands a certificate, and a client whose files are replaced while it runs.
func TestCertificatesAreReadForEachConnection(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	u, err := storeurl.Parse("s://h:1?"+c.Both(), "")
	if err != nil {
		t.Fatal(err)
	}
	address := serveTLS(t, c)
	if err := shake(t, address, "localhost", u.TLS); err != nil {
		t.Fatal(err)
	}
	if err := shake(t, address, "elsewhere", u.TLS); err == nil || !strings.Contains(err.Error(), "connect to a name") {
		t.Errorf("another name: %v", err)
	}
	for from, to := range map[string]string{other.Cert: c.Cert, other.Key: c.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := shake(t, address, "localhost", u.TLS); err == nil || !strings.Contains(err.Error(), "give a certificate that the server accepts") {
		t.Errorf("a certificate of another authority: %v", err)
	}
	if err := os.Remove(c.Key); err != nil {
		t.Fatal(err)
	}
	if err := shake(t, address, "localhost", u.TLS); err == nil || !strings.Contains(err.Error(), "tls-cert and tls-key") {
		t.Errorf("without the key: %v", err)
	}
}

// A handshake finds what no other attempt will change. A server that is unavailable or silent is no error, and hides that
// of no other. One that accepts is enough.
func TestShake(t *testing.T) {
	t.Parallel()
	c, other := testbedtest.NewCertificates(t), testbedtest.NewCertificates(t)
	server := serveTLS(t, c)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for url, want := range map[string]string{
		"s://" + server: "", "s://" + server + "?" + c.Both(): "", "s://127.0.0.1:1?tls=true": "", "s://" + silent.Addr().String() + "?tls=true": "",
		"s://" + server + "?" + other.Both():                              "give the authority",
		"s://127.0.0.1:1," + server + "?" + c.With(other):                 "give a certificate that the server accepts",
		"s://" + server + "?" + c.Server():                                "give a certificate that the server accepts",
		"s://" + silent.Addr().String() + "," + server + "?" + c.Server(): "give a certificate that the server accepts",
		"s://" + serveTLS(t, other) + "," + server + "?" + c.Both():       "",
	} {
		u, err := storeurl.Parse(url, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Shake(t.Context()); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// serveTLS answers each connection that shows a certificate of c with one byte.
func serveTLS(t *testing.T, c testbedtest.Certificates) string {
	t.Helper()
	u, err := storeurl.Parse("s://h:1?"+c.Both(), "")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := u.TLS.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{*pair}, ClientCAs: u.TLS.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte{1})
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

func shake(t *testing.T, address, name string, config *tls.Config) error {
	t.Helper()
	config = config.Clone()
	config.ServerName = name
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return fmt.Errorf("%w: %s", err, storeurl.Hint(err))
	}
	defer conn.Close()
	if _, err = conn.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("%w: %s", err, storeurl.Hint(err))
	}
	return nil
}
