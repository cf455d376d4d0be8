package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"example.com/shop/internal/httpapi"
)

const (
	askTimeout  = 70 * time.Second // more than an instance takes for the slowest answer
	dialTimeout = 5 * time.Second
	maxAnswer   = 16 << 20

	// keyVariable has the key of an admin, for instances that ask for one. It is no
	// flag: every user can read the flags of a process.
	keyVariable = "SHOP_KEY"
)

// httpClient sends the requests of all commands. A request has the key of an admin, so it goes only to the address
// that the user names. A redirect is not followed.
var httpClient = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true,
		DisableKeepAlives:   true, // most commands send one request
	},
}

// client asks a running instance for a command.
type client struct {
	p        Process
	command  string // that asks
	base     string // URL
	listener string // the flag of the listener that the command uses
}

// urlFlag returns the flag that names another instance: --url for --listen, and --admin-url for --admin-listen.
func (c client) urlFlag() string { return "--" + strings.Replace(c.listener, "listen", "url", 1) }

// validBase returns the URL of a listener without a path.
func validBase(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", errors.New("want http://HOST:PORT or https://HOST:PORT")
	}
	return u.Scheme + "://" + u.Host, nil
}

// ask sends one request, with body in JSON unless that is nil, and reads the answer into v.
func (c client) ask(ctx context.Context, method, path string, body, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: read the response of %s: %w", c.command, c.base, err)
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("X-Instance-Id") != "" {
		if err := json.Unmarshal(answer, v); err == nil {
			return nil
		}
	}
	return c.refused(resp, answer)
}

// request returns a request with the key of the user, and body in JSON unless that is nil.
func (c client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, &content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.command, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key := c.p.Getenv(keyVariable); key != "" {
		if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("%s: %s is malformed: an API key has no spaces and no line breaks", c.command, keyVariable)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// do sends a request.
func (c client) do(req *http.Request) (*http.Response, error) {
	resp, err := httpClient.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%s: nothing listens at %s: start an instance with shop serve --%s %s, or name another one with %s",
			c.command, c.base, c.listener, req.URL.Host, c.urlFlag())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.command, err)
	}
	return resp, nil
}

// refused says why there is no answer. An address that has no such path is not that of the listener.
func (c client) refused(resp *http.Response, body []byte) error {
	if to, err := resp.Location(); err == nil {
		return fmt.Errorf("%s: %s redirects to %s: if that is an instance, name it with %s", c.command, c.base, to, c.urlFlag())
	}
	var p httpapi.Problem
	err := json.Unmarshal(body, &p)
	problem := err == nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json")
	if !problem || p.Type == httpapi.TypeNotFound && strings.Contains(p.Detail, "this path") {
		return fmt.Errorf("%s: %s responds with %s and is not the --%s of an instance", c.command, c.base, resp.Status, c.listener)
	}
	if resp.StatusCode == http.StatusUnauthorized || p.Type == httpapi.TypeForbidden {
		return fmt.Errorf("%s: %s Set %s to an admin's key; shop keys create --admin makes one", c.command, p.Detail, keyVariable)
	}
	for _, e := range p.Errors {
		p.Detail += fmt.Sprintf(" %s: %s.", e.Pointer, strings.TrimSuffix(e.Detail, "."))
	}
	return fmt.Errorf("%s: %s", c.command, p.Detail)
}
