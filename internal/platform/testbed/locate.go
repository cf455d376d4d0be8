package testbed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// locate finds a server program in PATH or in the folders where systems put
// servers without adding them to the PATH of a user. With SHOP_TEST_REQUIRE=0 it finds none.
func locate(name string) (string, error) {
	if os.Getenv("SHOP_TEST_REQUIRE") == "0" {
		return "", fmt.Errorf("%s: %w: SHOP_TEST_REQUIRE=0", name, ErrNotInstalled)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // of Debian; the pattern is right
	slices.Reverse(versions)
	for _, folder := range append(versions, []string{
		"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/bin",
		"/opt/homebrew/bin", "/opt/homebrew/opt/mariadb/bin",
	}...) {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
}

// reservations hold the UDP port of each number that this process has given out, until the process ends.
var reservations struct {
	sync.Mutex
	held []net.PacketConn
}

// freePort returns a loopback port that nobody listens on. It is below the ranges that systems use for outgoing
// connections. Otherwise a client's connection could occupy it while its server is being restarted. No process that uses
// this package gets the port again, even while its server is down: the UDP port of that number is its reservation.
func freePort(ctx context.Context) (int, error) {
	ln, port, err := freeListener(ctx)
	if err != nil {
		return 0, err
	}
	return port, ln.Close()
}

// FreeAddress returns a HOST:PORT of loopback at which no program listens. No process that uses this package gets it again.
func FreeAddress(ctx context.Context) (string, error) {
	port, err := freePort(ctx)
	return loopback(port), err
}

// freePorts returns several free ports.
func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	return ports, nil
}

// freeListener is freePort with the port in use.
func freeListener(ctx context.Context) (net.Listener, int, error) {
	const lowest, ports, attempts = 20000, 12000, 100
	var network net.ListenConfig
	var err error
	for range attempts {
		port := lowest + rand.N(ports)
		reservation, taken := network.ListenPacket(ctx, "udp", loopback(port))
		if err = taken; err != nil {
			continue
		}
		var ln net.Listener
		if ln, err = network.Listen(ctx, "tcp", loopback(port)); err != nil {
			_ = reservation.Close()
			continue
		}
		reservations.Lock()
		defer reservations.Unlock()
		reservations.held = append(reservations.held, reservation)
		return ln, port, nil
	}
	return nil, 0, fmt.Errorf("free port: %w", err)
}

// loopback is the address of a port on this machine.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
