package fleet

import (
	"context"
	"net/url"
	"strings"

	"example.com/shop/internal/platform/testbed"
)

// Between puts a proxy between an instance and the one server at an address, and returns the address to give to the instance. It
// returns no proxy for a file, for a group of servers, and for what needs TLS, whose certificate names the server.
func Between(ctx context.Context, address string) (*testbed.Proxy, string, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "mysql" && u.Scheme != "postgres") || u.Port() == "" || strings.Contains(u.Host, ",") {
		return nil, address, nil //nolint:nilerr // what is no URL has no one server
	}
	p, err := testbed.NewProxy(ctx, u.Host)
	if err != nil {
		return nil, "", err
	}
	u.Host = p.Addr()
	return p, u.String(), nil
}
