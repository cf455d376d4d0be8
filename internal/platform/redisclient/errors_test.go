package redisclient_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// provoked are ways to have a server refuse a script that writes.
var provoked = map[string]struct {
	args   []string // of the server
	before [][]any  // what is done to the server first
	user   string   // of the client
	do     [][]any  // what is done to the server then
	cut    bool     // connections end then: one that is open may do what it could do before
	hold   []any    // what the server does while it refuses
	until  func(t *testing.T, admin redis.UniversalClient)
	wrong  bool // another server is asked from then on
}{
	"READONLY":    {do: [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, wrong: true},
	"MASTERDOWN":  {do: [][]any{{"CONFIG", "SET", "replica-serve-stale-data", "no"}, {"REPLICAOF", "127.0.0.1", "1"}}, wrong: true},
	"NOREPLICAS":  {do: [][]any{{"CONFIG", "SET", "min-replicas-to-write", "1"}}, wrong: true},
	"CLUSTERDOWN": {args: []string{"--cluster-enabled", "yes"}, before: [][]any{{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}}, do: [][]any{{"CLUSTER", "DELSLOTSRANGE", "0", "16383"}}, wrong: true},
	"LOADING": {
		args: []string{"--enable-debug-command", "yes", "--key-load-delay", "100000", "--loading-process-events-interval-bytes", "1024"},
		do:   [][]any{{"DEBUG", "POPULATE", "300", "key", "2048"}}, hold: []any{"DEBUG", "RELOAD"}, wrong: true,
	},
	"NOPERM":    {do: [][]any{{"ACL", "SETUSER", "default", "-@scripting"}}},
	"NOAUTH":    {do: [][]any{{"CONFIG", "SET", "requirepass", "new"}}, cut: true},
	"WRONGPASS": {before: [][]any{{"CONFIG", "SET", "requirepass", "former"}}, user: ":former@", do: [][]any{{"CONFIG", "SET", "requirepass", "new"}}, cut: true},
	"OOM":       {do: [][]any{{"CONFIG", "SET", "maxmemory", "1"}}},
	"MISCONF":   {do: [][]any{{"CONFIG", "SET", "save", "3600 1"}}, until: failedToSave},
	"BUSY":      {args: []string{"--busy-reply-threshold", "1"}, hold: []any{"EVAL", "while true do end", "0"}},
}

// failedToSave returns when a server could not write its data to disk: there is a folder instead of the file.
func failedToSave(t *testing.T, admin redis.UniversalClient) {
	t.Helper()
	folder := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
	if err := os.MkdirAll(filepath.Join(folder, "dump.rdb", "occupied"), 0o700); err != nil {
		t.Fatal(err)
	}
	ask(t, admin, "BGSAVE")
	testbedtest.Eventually(t, "a save that fails", func() bool {
		return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
}

// connections is how many connections a pool has when its server changes.
const connections = 4

// TestWrongServerIsLeft: an address leads to another server, and connections to the former one stay open. The first
// refusal is the only one, whatever words a proxy uses. Other refusals leave no server.
func TestWrongServerIsLeft(t *testing.T) {
	t.Parallel()
	for code, c := range provoked {
		for _, wording := range []string{"-" + code + " ", "-ERR " + code + " ", "-ERR Error running script: @user_script: 1: -" + code + " "} {
			if c.hold != nil && wording != "-"+code+" " {
				continue // such a server keeps a processor busy, and once is enough
			}
			t.Run(code+"/"+wording, func(t *testing.T) {
				t.Parallel()
				former, next := testbedtest.StartRedis(t, testbed.RedisConfig{Args: c.args}), testbedtest.StartRedis(t, testbed.RedisConfig{})
				proxy := testbedtest.StartProxy(t, former.Addr())
				proxy.Reword("-"+code+" ", wording)
				admin, rdb := redistest.Client(t, former.URL()), redistest.Client(t, "redis://"+c.user+proxy.Addr())
				for _, args := range c.before {
					ask(t, admin, args...)
				}
				testbedtest.Eventually(t, "the server to serve", func() bool { return rdb.Set(t.Context(), "k", 1, 0).Err() == nil })
				fill(t, rdb)
				proxy.Lead(next.Addr())
				for _, args := range c.do {
					ask(t, admin, args...)
				}
				if c.hold != nil {
					other := redistest.Client(t, former.URL())
					go other.Do(t.Context(), c.hold...)
					testbedtest.Eventually(t, "the server to refuse", func() bool { return admin.Set(t.Context(), "k", 1, 0).Err() != nil })
				}
				if c.until != nil {
					c.until(t, admin)
				}
				if c.cut {
					proxy.Lead(former.Addr())
					proxy.Refuse()
					if err := proxy.Pass(); err != nil {
						t.Fatal(err)
					}
				}
				err := set(t.Context(), rdb)
				if err == nil || !strings.Contains(err.Error(), code+" ") || redisx.WrongServer(err) != c.wrong || !redisx.Refused(err) {
					t.Fatalf("the first call: %v; want %s, of the wrong server: %v", err, code, c.wrong)
				}
				if err := set(t.Context(), rdb); (err == nil) != c.wrong {
					t.Errorf("the second call: %v", err)
				}
				if c.hold != nil {
					former.Kill()
				}
			})
		}
	}
}

// TestCallsTogetherLeaveTheWrongServer: one script has served several calls, and has an error for each.
func TestCallsTogetherLeaveTheWrongServer(t *testing.T) {
	t.Parallel()
	former, next := testbedtest.StartRedis(t, testbed.RedisConfig{}), testbedtest.StartRedis(t, testbed.RedisConfig{})
	proxy := testbedtest.StartProxy(t, former.Addr())
	rdb := redistest.Client(t, "redis://"+proxy.Addr())
	caller := redisx.NewCaller(rdb, time.Minute)
	call := func() (errs []error) {
		for _, r := range caller.RunAll(t.Context(), writes, []redisx.Request{{Keys: []string{"a"}}, {Keys: []string{"b"}}}) {
			errs = append(errs, r.Err)
		}
		return errs
	}
	if err := errors.Join(call()...); err != nil {
		t.Fatal(err)
	}
	fill(t, rdb)
	proxy.Lead(next.Addr())
	ask(t, redistest.Client(t, former.URL()), "REPLICAOF", "127.0.0.1", "1")
	for _, err := range call() {
		if !redisx.WrongServer(err) {
			t.Errorf("a first call: %v, want READONLY", err)
		}
	}
	if err := errors.Join(append(call(), set(t.Context(), rdb))...); err != nil {
		t.Errorf("the next calls: %v", err)
	}
}

// TestWrongServerIsLeftOverTLS: a connection with TLS has nothing to ask the system about.
func TestWrongServerIsLeftOverTLS(t *testing.T) {
	t.Parallel()
	former, next := testbedtest.StartRedis(t, testbed.RedisConfig{}), testbedtest.StartRedis(t, testbed.RedisConfig{})
	proxy := testbedtest.StartProxy(t, former.Addr())
	rdb := redistest.Client(t, "redis://"+proxy.Addr())
	rdb.AddHook(opaque{})
	fill(t, rdb)
	if err := errors.Join(set(t.Context(), rdb), set(t.Context(), rdb)); err != nil || rdb.PoolStats().StaleConns > 0 {
		t.Errorf("good connections are left: %v, %+v", err, rdb.PoolStats())
	}
	proxy.Lead(next.Addr())
	ask(t, redistest.Client(t, former.URL()), "REPLICAOF", "127.0.0.1", "1")
	if err := set(t.Context(), rdb); !redisx.WrongServer(err) {
		t.Errorf("the first call: %v, want READONLY", err)
	}
	if err := set(t.Context(), rdb); err != nil {
		t.Errorf("the second call: %v", err)
	}
}

// opaque is a hook that hides the file descriptors of connections, as TLS does.
type opaque struct{ testbedtest.Dials }

func (opaque) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		return struct{ net.Conn }{c}, err
	}
}

// TestErrorsPageOfRedis compares docs/reference/errors-of-stores.md with the code, and with the errors that this file
// provokes.
func TestErrorsPageOfRedis(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors-of-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| Redis \| ([A-Z]+) \| [^|]+ \| ([^|]+) \| (yes|no) \|$`).FindAllStringSubmatch(string(page), -1)
	for _, m := range rows {
		wrong := redisx.WrongServer(reply(m[1] + " text"))
		if want := map[bool]string{true: "replaced", false: "kept"}[wrong]; m[2] != want {
			t.Errorf("%s: the page has %q, the code %q", m[1], m[2], want)
		}
		if _, ok := provoked[m[1]]; ok != (m[3] == "yes") {
			t.Errorf("%s: provoked: %v; the page has %s", m[1], ok, m[3])
		}
	}
	if len(rows) < len(provoked) {
		t.Errorf("the page has %d rows, and %d errors are provoked", len(rows), len(provoked))
	}
}

// reply is an error that a server answers.
type reply string

func (r reply) Error() string { return string(r) }

func (reply) RedisError() {}

var writes = redisx.NewScript(`return redis.call('SET', KEYS[1], 1)`)

func ask(t *testing.T, rdb redis.UniversalClient, args ...any) {
	t.Helper()
	if err := rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(args, err)
	}
}

func set(ctx context.Context, rdb redis.UniversalClient) error {
	_, err := writes.Run(ctx, rdb, []string{"k"}, nil)
	return err
}

// fill opens connections that the pool keeps.
func fill(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	var held []*redis.Conn
	for range connections {
		conn := rdb.(*redis.Client).Conn()
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Close()
	}
	if got := rdb.PoolStats().IdleConns; got != connections {
		t.Fatalf("the pool has %d connections, want %d", got, connections)
	}
	if err := set(t.Context(), rdb); err != nil {
		t.Fatal(err)
	}
}
