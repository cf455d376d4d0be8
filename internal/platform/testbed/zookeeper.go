package testbed

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ZooKeeperConfig says how to run a ZooKeeper server. The zero value is a server
// that flushes every change and lets sessions be as short as 400 ms.
type ZooKeeperConfig struct {
	// Tick is the unit of time of the server; a session lasts for two of them at
	// least, and ends up to one late. Default: 200 ms.
	Tick time.Duration
	// Settings are further lines of the configuration file.
	Settings []string
}

// ZooKeeper is a ZooKeeper server that runs as a child process.
type ZooKeeper struct {
	*Process
	addr string
	data string
}

// StartZooKeeper runs a ZooKeeper server on a free loopback port and returns when it has opened a session: it accepts
// connections long before. Restart keeps the data. It needs Java.
func StartZooKeeper(ctx context.Context, cfg ZooKeeperConfig) (*ZooKeeper, error) {
	z, err := newZooKeeper(ctx)
	if err != nil {
		return nil, err
	}
	return z, z.startOn(ctx, func(port int) error { return z.configure(cfg, port) })
}

// newZooKeeper prepares a server that has no configuration yet.
func newZooKeeper(ctx context.Context) (*ZooKeeper, error) {
	classes, err := zooKeeperClasses()
	if err != nil {
		return nil, err
	}
	process, err := openProcess(ctx, "zookeeper", "java")
	if err != nil {
		return nil, err
	}
	z := &ZooKeeper{Process: process, data: filepath.Join(process.folder, "data")}
	process.ready = z.ready
	process.args = []string{
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError",
		"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", z.file(),
	}
	return z, nil
}

// zooKeeperClasses returns the class path of the server. Its package in Debian names
// what it depends on; other systems keep all of it in one folder.
func zooKeeperClasses() (string, error) {
	if _, err := os.Stat("/usr/share/java/zookeeper.jar"); err == nil {
		return "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/netty-codec.jar", nil
	}
	for _, folder := range []string{"/opt/zookeeper/lib", "/opt/homebrew/opt/zookeeper/libexec/lib", "/usr/local/opt/zookeeper/libexec/lib"} {
		if found, err := filepath.Glob(filepath.Join(folder, "zookeeper-*.jar")); err == nil && len(found) > 0 {
			return filepath.Join(folder, "*"), nil
		}
	}
	return "", fmt.Errorf("zookeeper: %w", ErrNotInstalled)
}

// configure writes the configuration file for the server at port.
func (z *ZooKeeper) configure(cfg ZooKeeperConfig, port int, more ...string) error {
	z.addr = loopback(port)
	lines := append([]string{
		fmt.Sprintf("tickTime=%d", cmp.Or(cfg.Tick, 200*time.Millisecond).Milliseconds()),
		"dataDir=" + z.data, "clientPortAddress=127.0.0.1", fmt.Sprintf("clientPort=%d", port),
		"maxClientCnxns=0", "maxSessionTimeout=60000", "admin.enableServer=false", "4lw.commands.whitelist=*",
		"preAllocSize=1024",
	}, more...)
	lines = append(lines, cfg.Settings...)
	if err := os.MkdirAll(z.data, 0o700); err != nil {
		return err
	}
	return os.WriteFile(z.file(), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (z *ZooKeeper) file() string { return filepath.Join(z.folder, "zoo.cfg") }

// Addr is the server's HOST:PORT.
func (z *ZooKeeper) Addr() string { return z.addr }

// RestartEmpty is Restart with a server that has lost its data: all nodes, all
// sessions, and the count of its transactions.
func (z *ZooKeeper) RestartEmpty(ctx context.Context) error {
	if err := z.Stop(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(z.data, "version-2")); err != nil {
		return err
	}
	return z.Restart(ctx)
}

// ready asks who answers and opens a session, which a member of an ensemble can do
// only with a majority.
func (z *ZooKeeper) ready(ctx context.Context, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conf, err := z.Ask(ctx, "conf")
	if err != nil {
		return err
	}
	for line := range strings.Lines(conf) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "dataDir="); ok {
			return cmp.Or(expect("data folder", filepath.Dir(data), z.data), z.session(ctx))
		}
	}
	return fmt.Errorf("conf: %s", strings.TrimSpace(conf))
}
