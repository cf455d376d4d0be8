package testbedtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are the files in the format PEM of an authority, and of a certificate that it gave to both servers and
// clients of this machine.
type Certificates struct{ CA, Cert, Key string }

// NewCertificates makes certificates of an authority of their own.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityKey := newKey(t)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "shop"}, NotAfter: authority.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	key := newKey(t)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	sign := func(name string, c *x509.Certificate, public *ecdsa.PublicKey) string {
		der, err := x509.CreateCertificate(rand.Reader, c, authority, public, authorityKey)
		if err != nil {
			t.Fatal(err)
		}
		return write(name, "CERTIFICATE", der)
	}
	return Certificates{
		CA: sign("ca.pem", authority, &authorityKey.PublicKey), Cert: sign("cert.pem", leaf, &key.PublicKey),
		Key: write("key.pem", "PRIVATE KEY", private),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Server are the parameters of a store's URL that check a server.
func (c Certificates) Server() string { return "tls-ca=" + c.CA }

// Both are the parameters by which a client also shows its own certificate.
func (c Certificates) Both() string { return c.Server() + "&tls-cert=" + c.Cert + "&tls-key=" + c.Key }

// With are the parameters by which a client of c shows a certificate of another authority.
func (c Certificates) With(other Certificates) string {
	c.Cert, c.Key = other.Cert, other.Key
	return c.Both()
}

// pair returns a file with the key and the certificate.
func (c Certificates) pair(t testing.TB) string {
	t.Helper()
	var both []byte
	for _, file := range []string{c.Key, c.Cert} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, b...)
	}
	file := filepath.Join(t.TempDir(), "pair.pem")
	if err := os.WriteFile(file, both, 0o600); err != nil { //nolint:gosec // The folder is that of the test.
		t.Fatal(err)
	}
	return file
}
