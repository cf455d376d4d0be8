package app

import (
	"net"
	"os"
)

// reachedAt returns where others reach a listener at the given address. If it listens on every address of the
// machine, that is the first one in all that others can reach, IPv4 before IPv6. A machine without such an address is
// reached by its name.
func reachedAt(listener net.Addr, all []net.Addr) string {
	host, port, err := net.SplitHostPort(listener.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return listener.String()
	}
	found := ""
	for _, a := range all {
		network, ok := a.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			return net.JoinHostPort(network.IP.String(), port)
		case found == "":
			found = network.IP.String()
		}
	}
	if found == "" {
		found = Hostname()
	}
	return net.JoinHostPort(found, port)
}

// advertised returns where the instance says that others reach it.
func advertised(c Config, listener net.Addr) string {
	if c.Advertise != "" {
		return c.Advertise
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		all = nil // its name remains
	}
	return reachedAt(listener, all)
}

// Hostname returns the name of this machine.
func Hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "shop"
	}
	return h
}
