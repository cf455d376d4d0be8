// Package storeurl reads the URLs of stores, which name one server or several:
//
//	SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH?PARAMETERS
//
// All stores have the same parameters of TLS, see [TLS]. No error and no result of [Redacted] has a password.
package storeurl

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// URL is a URL of a store.
type URL struct {
	Scheme         string // empty if there is none
	User, Password string
	Hosts          []string    // HOST:PORT each, one or more
	Path           string      // without the slash before it
	TLS            *tls.Config // nil without TLS
	Params         url.Values  // without those of TLS
}

// ErrForm means that a text is no URL of a store. It does not repeat the text: an unescaped character in a password
// moves the password to any part of it.
var ErrForm = errors.New("malformed URL")

// Parse reads a URL, and the files that it names. Hosts without a port get the given one; if that is empty, they are
// errors. An error is ErrForm, or one of [TLS].
func Parse(raw, port string) (URL, error) {
	var u URL
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		scheme, rest = "", raw
	}
	u.Scheme = scheme
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	user, password, _ := strings.Cut(authority[:max(at, 0)], ":")
	bad := strings.ContainsAny(raw, "# ")
	for to, text := range map[*string]string{&u.User: user, &u.Password: password, &u.Path: path} {
		var err error
		*to, err = url.PathUnescape(text)
		bad = bad || err != nil
	}
	for host := range strings.SplitSeq(authority[at+1:], ",") {
		if port != "" && !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
			host += ":" + port
		}
		name, number, err := net.SplitHostPort(host)
		n, wrong := strconv.ParseUint(number, 10, 16)
		bad = bad || err != nil || wrong != nil || name == "" || n == 0
		u.Hosts = append(u.Hosts, host)
	}
	var err error
	u.Params, err = url.ParseQuery(query)
	if bad || err != nil {
		return URL{}, ErrForm
	}
	u.TLS, err = TLS(scheme, u.Params)
	return u, err
}

// Redacted returns a URL that [Parse] accepts without its password, and without the parameters that are not of TLS:
// one of them may be another password.
func Redacted(raw string) string {
	rest, query, _ := strings.Cut(raw, "?")
	scheme, rest, ok := strings.Cut(rest, "://")
	if !ok {
		scheme, rest = "", scheme
	} else {
		scheme += "://"
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, secret := strings.Cut(rest[:at], ":")
		if secret {
			user += ":xxxxx"
		}
		rest = user + rest[at:]
	}
	mark := "?"
	for param := range strings.SplitSeq(query, "&") {
		if strings.HasPrefix(param, "tls") {
			rest += mark + param
			mark = "&"
		}
	}
	return scheme + rest
}
