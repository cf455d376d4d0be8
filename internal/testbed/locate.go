package testbed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	for _, folder := range []string{
		"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/bin",
		"/opt/homebrew/bin", "/opt/homebrew/opt/mariadb/bin",
	} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
}

// given are the ports that this process has given out.
var given sync.Map

// freePort returns a loopback port that nobody listens on. It is below the ranges that systems use for outgoing
// connections. Otherwise a client's connection could occupy it while its server is being restarted. Each port is
// returned once, so no other server can occupy it.
func freePort(ctx context.Context) (int, error) {
	ln, port, err := freeListener(ctx)
	if err != nil {
		return 0, err
	}
	return port, ln.Close()
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
	err := errors.New("all have been given out")
	for range attempts {
		var ln net.Listener
		port := lowest + rand.N(ports)
		if _, taken := given.LoadOrStore(port, nil); taken {
			continue
		}
		ln, err = new(net.ListenConfig).Listen(ctx, "tcp", loopback(port))
		if err == nil {
			return ln, port, nil
		}
	}
	return nil, 0, fmt.Errorf("free port: %w", err)
}

// loopback is the address of a port on this machine.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
