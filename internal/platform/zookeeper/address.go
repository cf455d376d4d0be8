package zookeeper

import (
	"errors"

	"example.com/shop/internal/platform/storeurl"
)

// Address returns the configuration of sessions with the servers at
//
//	HOST:PORT,HOST:PORT/CHROOT?PARAMETERS
//
// All nodes are below CHROOT, which may be empty; [storeurl.TLS] has the parameters. It connects to nothing.
func Address(address string) (Config, error) {
	u, err := storeurl.Parse(address, "")
	switch {
	case err != nil && !errors.Is(err, storeurl.ErrForm):
		return Config{}, err
	case err != nil || u.Scheme != "" || u.User != "" || u.Password != "" || len(u.Params) > 0:
		return Config{}, errors.New("want HOST:2181,... or HOST:2181,.../CHROOT")
	}
	c := Config{Servers: u.Hosts, TLS: u.TLS}
	if u.Path != "" {
		c.Root = "/" + u.Path + defaultRoot
	}
	return c, nil
}
