package app

import (
	"net"
	"strings"
	"testing"
)

// Members name an address at which others reach them, also those that listen on every address.
func TestAdvertised(t *testing.T) {
	t.Parallel()
	addresses := func(texts ...string) (all []net.Addr) {
		for _, text := range texts {
			ip, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			network.IP = ip
			all = append(all, network)
		}
		return all
	}
	docker := addresses("127.0.0.1/8", "::1/128", "fe80::1/64", "fd00::7/64", "172.18.0.7/16", "172.19.0.7/16")
	for _, test := range []struct {
		listener net.Addr
		all      []net.Addr
		want     string
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, docker, "127.0.0.1:8080"},
		{&net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8080}, docker, "10.1.2.3:8080"},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}, docker, "172.18.0.7:8080"},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 80}, docker, "172.18.0.7:80"},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}, addresses("::1/128", "fe80::1/64", "fd00::7/64"), "[fd00::7]:8080"},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}, addresses("127.0.0.1/8"), net.JoinHostPort(Hostname(), "8080")},
	} {
		if got := reachedAt(test.listener, test.all); got != test.want {
			t.Errorf("%s is reached at %s, want %s", test.listener, got, test.want)
		}
	}
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}
	if got := advertised(Config{}, everywhere); strings.HasPrefix(got, "[::]") {
		t.Errorf("others see %s", got)
	}
	if got := advertised(Config{Advertise: "shop-1.example:80"}, everywhere); got != "shop-1.example:80" {
		t.Errorf("%s is notified, and not what was given", got)
	}
	for _, bad := range []string{"8080", ":8080", "0.0.0.0:8080", "[::]:8080", "shop:0", "shop:x", strings.Repeat("a", 130) + ":8080", "a b:80"} {
		if err := validAdvertise(bad); err == nil || !strings.Contains(err.Error(), "--advertise") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
