package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// patroniMembers is how many servers a cluster has.
const patroniMembers = 3

// Patroni is PostgreSQL on three servers with synchronous replication. Agents elect the writer by an etcd of their own.
type Patroni struct {
	servers[*PatroniMember]

	etcd *Etcd
}

// PatroniMember is an agent and its server, which are paused and killed together. The user of the server is shop, who may do everything.
type PatroniMember struct {
	*Process // the agent, whose processes the server does not belong to

	name, scope, addr, rest, data string
}

// StartPatroni runs three servers on free loopback ports, and returns when one accepts writes and the others follow it. A writer that is
// silent for ttl has a successor. It needs patroni, etcd and the programs of PostgreSQL.
func StartPatroni(ctx context.Context, ttl time.Duration) (*Patroni, error) {
	etcd, err := StartEtcd(ctx, EtcdConfig{Args: []string{"--unsafe-no-fsync"}})
	if err != nil {
		return nil, err
	}
	p := &Patroni{etcd: etcd}
	starts, starting := errgroup.WithContext(ctx)
	for i := range patroniMembers {
		process, err := openProcess(ctx, "patroni", "patroni")
		if err != nil {
			return nil, errors.Join(err, starts.Wait(), p.Close())
		}
		m := &PatroniMember{Process: process, name: fmt.Sprint("db", i+1), scope: etcd.name, data: filepath.Join(process.folder, "data")}
		process.ready = m.ready
		p.nodes = append(p.nodes, m)
		starts.Go(func() error { return m.begin(starting, etcd.Addr(), ttl) })
	}
	if err = starts.Wait(); err == nil {
		err = p.Whole(ctx)
	}
	if err == nil {
		var leader *PatroniMember
		if leader, err = p.Leader(ctx); err == nil {
			err = execPostgres(ctx, leader.addr, "CREATE DATABASE "+DefaultDatabase)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// begin writes the file of settings, and starts the agent.
func (m *PatroniMember) begin(ctx context.Context, etcd string, ttl time.Duration) error {
	programs, err := locate("pg_controldata")
	if err != nil {
		return err
	}
	program := m.path
	return m.startOn(ctx, func(port int) error {
		rest, err := freePort(ctx)
		if err != nil {
			return err
		}
		m.addr, m.rest = loopback(port), loopback(rest)
		type object = map[string]any
		user := object{"username": "shop"}
		settings, err := json.Marshal(object{
			"scope": m.scope, "name": m.name,
			"restapi": object{"listen": m.rest, "connect_address": m.rest},
			"etcd3":   object{"hosts": []string{etcd}},
			"bootstrap": object{
				"dcs": object{
					"ttl": ttl.Seconds(), "loop_wait": 1, "retry_timeout": 9, "synchronous_mode": true, "primary_start_timeout": 0,
					"postgresql": object{"use_pg_rewind": true, "parameters": object{
						"max_connections": 500, "shared_buffers": "64MB", "wal_log_hints": true, "wal_retrieve_retry_interval": "200ms",
					}},
				},
				"initdb": []any{object{"encoding": "UTF8"}, "no-locale", "no-sync"},
			},
			"postgresql": object{
				"listen": m.addr, "connect_address": m.addr, "data_dir": m.data, "bin_dir": filepath.Dir(programs), "pgpass": filepath.Join(m.folder, "pgpass"),
				"authentication": object{"superuser": user, "replication": user},
				"parameters":     object{"unix_socket_directories": ""},
				"pg_hba":         []string{"host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
			},
		})
		if err != nil {
			return err
		}
		file := filepath.Join(m.folder, "patroni.json")
		m.path, m.args = asPostgres(program, file)
		return errors.Join(os.WriteFile(file, settings, 0o600), ownedBy("postgres", m.folder, file))
	})
}

// Leader waits until a server accepts writes, as its agent knows it, and returns it.
func (p *Patroni) Leader(ctx context.Context) (leader *PatroniMember, err error) {
	err = until(ctx, "leader", func(ctx context.Context) (err error) {
		for _, m := range p.nodes {
			one, cancel := context.WithTimeout(ctx, attemptTimeout/4)
			err = m.ask(one, http.MethodGet, "/primary", "", nil)
			if cancel(); err == nil {
				leader = m
				return nil
			}
		}
		return err
	})
	return leader, err
}

// Whole returns when all servers run, one is the leader, and one its synchronous standby.
func (p *Patroni) Whole(ctx context.Context) error {
	return until(ctx, "all members follow", func(ctx context.Context) error {
		var cluster struct {
			Members []struct{ Name, Role, State string }
		}
		leader, err := p.Leader(ctx)
		if err == nil {
			err = leader.ask(ctx, http.MethodGet, "/cluster", "", &cluster)
		}
		if err != nil {
			return err
		}
		ready := make(map[string]int)
		for _, m := range cluster.Members {
			if m.State == "running" {
				ready[m.Role]++
			}
		}
		if ready["leader"] != 1 || ready["sync_standby"] != 1 || ready["replica"] != patroniMembers-2 {
			return fmt.Errorf("not yet: %+v", cluster.Members)
		}
		return nil
	})
}

// Switch makes the synchronous standby the leader.
func (p *Patroni) Switch(ctx context.Context) error {
	leader, err := p.Leader(ctx)
	if err != nil {
		return err
	}
	return leader.ask(ctx, http.MethodPost, "/switchover", fmt.Sprintf(`{"leader":%q}`, leader.name), nil)
}

// Close kills the servers and removes what they wrote.
func (p *Patroni) Close() error { return errors.Join(p.servers.Close(), p.etcd.Close()) }

// Addr is the HOST:PORT of the server of PostgreSQL.
func (m *PatroniMember) Addr() string { return m.addr }

// Check is the HOST:PORT at which the agent responds with 200 to /primary while its server is the leader.
func (m *PatroniMember) Check() string { return m.rest }

// URL is the address of DefaultDatabase as postgres://shop@HOST:PORT/shop.
func (m *PatroniMember) URL() string { return "postgres://shop@" + m.addr + "/" + DefaultDatabase }

// Kill crashes the agent and its server.
func (m *PatroniMember) Kill() error {
	err := m.Process.Kill() // which would start the server again
	if pid := m.postmaster(); pid > 0 {
		killTree(pid)
	}
	return err
}

// Pause stops the agent and its server at once.
func (m *PatroniMember) Pause() error {
	if pid := m.postmaster(); pid > 0 {
		pauseTree(pid)
	}
	return m.Process.Pause()
}

// Resume ends Pause.
func (m *PatroniMember) Resume() error {
	if pid := m.postmaster(); pid > 0 {
		resumeTree(pid)
	}
	return m.Process.Resume()
}

// Close kills the agent and its server and removes what they wrote. If this program dies instead, the guard removes the data, without which
// the server ends within a minute.
func (m *PatroniMember) Close() error { return errors.Join(m.Kill(), m.Process.Close()) }

// postmaster returns the number of the server's process, or 0. The file of a server that was killed may name another process by now.
func (m *PatroniMember) postmaster() int {
	text, _ := os.ReadFile(filepath.Join(m.data, "postmaster.pid")) // no file: the server does not run
	first, _, _ := strings.Cut(string(text), "\n")
	if folder, err := os.Readlink("/proc/" + first + "/cwd"); err != nil || folder != m.data {
		return 0
	}
	pid, _ := strconv.Atoi(first) // a link has its number
	return pid
}

// ready asks which cluster answers, and whether the server runs.
func (m *PatroniMember) ready(ctx context.Context, _ int) error {
	var is struct {
		State   string
		Patroni struct{ Scope string }
	}
	if err := m.ask(ctx, http.MethodGet, "/patroni", "", &is); err != nil {
		return err
	}
	return expect("cluster", is.Patroni.Scope+" "+is.State, m.scope+" running")
}

// ask sends a request to the agent.
func (m *PatroniMember) ask(ctx context.Context, method, path, body string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout) // for a switch-over; others respond at once
	defer cancel()
	if err := askJSON(ctx, method, "http://"+m.rest+path, body, answer); err != nil {
		return fmt.Errorf("patroni: %s: %w", path, err)
	}
	return nil
}
