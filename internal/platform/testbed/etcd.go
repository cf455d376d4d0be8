package testbed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// EtcdConfig says how to run etcd. The zero value is a server that keeps its data
// over Kill and Restart, and that takes a leader for dead after half a second.
type EtcdConfig struct {
	// Secure is a HOST:PORT for clients with TLS, of which Args name the files. Default: none.
	Secure string
	// Args are further options of etcd; they win over the ones above.
	Args []string
}

// Etcd is one member of an etcd cluster, or all of it, that runs as a child process.
type Etcd struct {
	*Process
	name string
	addr string
	peer string // where the other members reach it, as HOST:PORT
}

// StartEtcd runs a cluster of one server on free loopback ports and returns when it has answered a linearizable read.
func StartEtcd(ctx context.Context, cfg EtcdConfig) (*Etcd, error) {
	e, err := openEtcd(ctx)
	if err != nil {
		return nil, err
	}
	return e, e.startOn(ctx, func(int) error {
		if err := e.place(ctx); err != nil {
			return err
		}
		e.args = cfg.args(e, []*Etcd{e})
		return nil
	})
}

// openEtcd prepares a member whose name no other server has.
func openEtcd(ctx context.Context) (*Etcd, error) {
	process, err := openProcess(ctx, "etcd", "etcd")
	if err != nil {
		return nil, err
	}
	e := &Etcd{Process: process, name: "shop-" + rand.Text()}
	process.ready = func(ctx context.Context, _ int) error { return e.ready(ctx) }
	return e, nil
}

// place finds ports for a member. It is for a server that has no data yet: etcd
// writes its address down.
func (e *Etcd) place(ctx context.Context) error {
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	e.addr, e.peer = loopback(ports[0]), loopback(ports[1])
	return e.erase()
}

// args are the options of member e of a cluster.
func (cfg EtcdConfig) args(e *Etcd, members []*Etcd) []string {
	cluster := make([]string, 0, len(members))
	for _, m := range members {
		cluster = append(cluster, m.name+"=http://"+m.peer)
	}
	clients := "http://" + e.addr
	if cfg.Secure != "" {
		clients += ",https://" + cfg.Secure
	}
	args := []string{
		"--name", e.name, "--data-dir", e.data(),
		"--listen-client-urls", clients, "--advertise-client-urls", "http://" + e.addr,
		"--listen-peer-urls", "http://" + e.peer, "--initial-advertise-peer-urls", "http://" + e.peer,
		"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-token", members[0].name,
		"--heartbeat-interval", "50", "--election-timeout", "500", // milliseconds; the shortest TTL of a lease grows with it
		"--logger", "zap", "--log-level", "warn",
	}
	return append(args, cfg.Args...)
}

// Addr is the HOST:PORT for clients.
func (e *Etcd) Addr() string { return e.addr }

// RestartEmpty starts the server again without its data, stopped in good order if
// it is running: a cluster of one starts again, with revision 1. A member of several
// cannot be started so, since the others know that it had data.
func (e *Etcd) RestartEmpty(ctx context.Context) error {
	if err := e.Stop(ctx); err != nil {
		return err
	}
	if err := e.erase(); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return e.start(ctx)
}

func (e *Etcd) data() string { return filepath.Join(e.Folder(), "data") }

func (e *Etcd) erase() error { return os.RemoveAll(e.data()) }

// ready asks for a linearizable read, which a member without a leader or a quorum
// cannot give, and who it was that answered.
func (e *Etcd) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := e.ask(ctx, "kv/range", `{"key":"AA=="}`, &struct{}{}); err != nil {
		return err
	}
	status, members, err := e.view(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(m etcdMember) bool { return m.ID == status.Header.MemberID })
	if i < 0 {
		return errors.New("the server is not a member yet")
	}
	return expect("member", members[i].Name, e.name)
}
