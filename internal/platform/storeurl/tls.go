package storeurl

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// TLS takes the parameters of TLS out of params, and returns the configuration that they describe:
//
//	tls=true        use TLS, with the authorities of the system
//	tls-ca=FILE     use TLS, with the authorities of this file only
//	tls-cert=FILE   use TLS, with this certificate of the client
//	tls-key=FILE    and this key
//
// The schemes rediss and https mean TLS too. Without any of these it returns nil. The server's certificate has to name
// the host of the URL. The files of the client are read for each connection, so they may be replaced before they expire.
func TLS(scheme string, params url.Values) (*tls.Config, error) {
	on := scheme == "https" || strings.HasPrefix(scheme, "rediss")
	take := func(name string) string {
		value := params.Get(name)
		on = on || params.Has(name)
		params.Del(name)
		return value
	}
	value, ca, cert, key := take("tls"), take("tls-ca"), take("tls-cert"), take("tls-key")
	if !on {
		return nil, nil //nolint:nilnil // No TLS is a choice of the user and no error.
	}
	if value != "" && value != "true" {
		return nil, errors.New("tls: want true, or a URL without parameters of TLS")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca) //nolint:gosec // The operator names the file.
		if err != nil {
			return nil, fmt.Errorf("tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls-ca: %s has no certificate in the format PEM", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("tls-cert and tls-key: give both or none")
	}
	if cert == "" {
		return config, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("tls-cert and tls-key: %w", err)
		}
		return &pair, nil
	}
	config.GetClientCertificate = load
	_, err := load(nil)
	return config, err
}

// Hint returns what to change in a URL if TLS may be the cause of the error of a connection, or an empty text.
func Hint(err error) string {
	hint := mismatch(err)
	if hint == "" && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, context.DeadlineExceeded)) {
		hint = "check that the server runs, and has TLS at this port if and only if the URL has tls-ca=FILE or tls=true; " +
			"if it demands a certificate, give one that it accepts by tls-cert=FILE and tls-key=FILE" // a reset may overtake its refusal
	}
	return hint
}

// mismatch is Hint for errors that no other attempt will change.
func mismatch(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "give the authority of the server's certificate by tls-ca=FILE"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "connect to a name that the server's certificate has"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server has no TLS at this port"
	}
	if Refused(err) {
		return "give a certificate that the server accepts by tls-cert=FILE and tls-key=FILE"
	}
	return ""
}

// Refused reports whether err is the server's refusal of TLS as the client wants it, most often of its certificate.
func Refused(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// Shake tries TLS with all servers at once, for up to 3 s. It is nil without TLS, if one accepts, and if none answers.
// Otherwise the error is that of the first server of the list that refuses, and says what to change.
func (u URL) Shake(ctx context.Context) error {
	if u.TLS == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var (
		accepted atomic.Bool
		refusals = make([]error, len(u.Hosts))
		attempts sync.WaitGroup
	)
	for i, host := range u.Hosts {
		attempts.Go(func() {
			err := u.shake(ctx, host)
			if err == nil {
				accepted.Store(true)
				cancel() // no other attempt matters
			} else if hint := mismatch(err); hint != "" {
				refusals[i] = fmt.Errorf("%s: %w: %s", host, err, hint)
			}
		})
	}
	attempts.Wait()
	if accepted.Load() {
		return nil
	}
	return cmp.Or(refusals...)
}

// shake returns nil if host accepts TLS.
func (u URL) shake(ctx context.Context, host string) error {
	conn, err := (&tls.Dialer{Config: u.TLS}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	// With TLS 1.3 a server refuses the certificate of the client after the handshake.
	if err = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if Refused(err) {
		return err
	}
	return nil
}
