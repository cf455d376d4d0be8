package redisx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// scriptCalls counts the commands that call scripts.
type scriptCalls struct{ commands atomic.Int64 }

func (s *scriptCalls) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	for _, cmd := range cmds { // a new connection sends commands of its own
		if strings.HasPrefix(cmd.Name(), "eval") {
			s.commands.Add(1)
		}
	}
	return send(ctx, cmds)
}

func onServers(t *testing.T, test func(*testing.T, string)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) { t.Parallel(); test(t, testbedtest.Redis(t)) })
	t.Run("embedded", func(t *testing.T) { t.Parallel(); test(t, "redis://"+miniredis.RunT(t).Addr()) })
}

const kindsLua = `
if ARGV[1] == 'number' then return 7 end
if ARGV[1] == 'list' then return {1, 'a', {2}} end
if ARGV[1] == 'MINE' or ARGV[1] == 'OOM' or ARGV[1] == 'READONLY' then return redis.error_reply(ARGV[1] .. ' of ' .. KEYS[1]) end
if ARGV[1] == 'fail' then redis.call('SET', KEYS[1], 'x'); return redis.call('LPUSH', KEYS[1], 'y') end
if ARGV[1] == 'text' then return KEYS[1] .. KEYS[2] .. ARGV[2] end`

// Calls that are made together have the replies that they would have alone. One that fails leaves the others alone.
func TestCallsOfAScriptAreOneCommand(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		t.Helper()
		rdb := redistest.Client(t, url)
		kinds := redisx.NewScript(fmt.Sprint("-- unknown to the server: ", rand.Uint64(), kindsLua))
		asked := []string{"number", "list", "MINE", "fail", "OOM", "nothing", "text", "READONLY", "text"}
		reply := func(reply any, err error) string {
			if err != nil && err != redis.Nil { //nolint:errorlint // As it came.
				code, _, _ := strings.Cut(err.Error(), " ")
				return "error " + code
			}
			return fmt.Sprint(reply, err)
		}
		var requests []redisx.Request
		for i, kind := range asked {
			keys := []string{fmt.Sprintf("{k}%d", i), fmt.Sprintf("{k}other%d", i)}
			requests = append(requests, redisx.Request{Keys: keys, Args: []any{kind, i}})
		}
		for round, flushed := range []bool{false, false, true} {
			if flushed {
				if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			own, sent := redistest.Client(t, url), &scriptCalls{}
			own.AddHook(testbedtest.RoundTrips(sent.roundTrip))
			replies := redisx.NewCaller(own, time.Minute).RunAll(t.Context(), kinds, requests)
			if got, want := sent.commands.Load(), []int64{2, 1, 2}[round]; got != want { // once more for an unknown script
				t.Errorf("round %d: %d commands, want %d", round, got, want)
			}
			for i, r := range replies {
				want, wantErr := kinds.Run(t.Context(), rdb, requests[i].Keys, requests[i].Args)
				if diff := cmp.Diff(reply(want, wantErr), reply(r.Value, r.Err)); diff != "" {
					t.Errorf("round %d: %s: %s", round, asked[i], diff)
				}
			}
		}
	})
}

// The client of Redis has types for some errors, and reads no further in a list that has one. Then the rest of the list
// would be the replies of the next commands.
func TestRefusedCallsLeaveTheNextCommandItsReply(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		t.Helper()
		refused, echo := redisx.NewScript("return redis.error_reply('OOM command not allowed')"), redisx.NewScript("return ARGV[1]")
		caller := redisx.NewCaller(redistest.Client(t, url), time.Minute)
		for i, r := range caller.RunAll(t.Context(), refused, []redisx.Request{{Keys: []string{"k"}}, {Keys: []string{"l"}}, {Keys: []string{"m"}}}) {
			if !redis.HasErrorPrefix(r.Err, "OOM") {
				t.Errorf("call %d: %v", i, r.Err)
			}
		}
		for i := range 4 {
			if got, _, err := caller.Run(t.Context(), echo, []string{"k"}, i); err != nil || got != fmt.Sprint(i) {
				t.Errorf("the next call %d: %v, %v", i, got, err)
			}
		}
	})
}

// slots refuses commands with keys of several slots, as a proxy of a cluster does.
type slots struct{}

type crossSlotError struct{}

func (crossSlotError) Error() string { return "CROSSSLOT Keys in request don't hash to the same slot" }
func (crossSlotError) RedisError()   {}

func (slots) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	if args := cmds[0].Args(); strings.HasPrefix(cmds[0].Name(), "eval") && args[2].(int) > 1 {
		cmds[0].SetErr(crossSlotError{})
		return crossSlotError{}
	}
	return send(ctx, cmds)
}

// Calls that cannot be one command are made apart: a cluster that pretends to be one server refuses keys of several
// slots, and calls may have different numbers of arguments.
func TestCallsThatDifferAreMadeApart(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		t.Helper()
		script := redisx.NewScript("return redis.call('INCRBY', KEYS[1], 1 + #ARGV)")
		for name, more := range map[string]int{"slots": 0, "arguments": 1} {
			rdb, prefix := redistest.Client(t, url), fmt.Sprint(name, rand.Uint64())
			if name == "slots" {
				rdb.AddHook(testbedtest.RoundTrips(slots{}.roundTrip))
			}
			var requests []redisx.Request
			for i := range 20 {
				r := redisx.Request{Keys: []string{fmt.Sprint(prefix, i)}}
				for range i * more {
					r.Args = append(r.Args, "x")
				}
				requests = append(requests, r)
			}
			for i, r := range redisx.NewCaller(rdb, time.Minute).RunAll(t.Context(), script, requests) {
				if r.Err != nil || r.Value != int64(1+i*more) {
					t.Errorf("%s: call %d: %v, %v", name, i, r.Value, r.Err)
				}
			}
		}
	})
}

// A cancelled caller returns at once, although its server does not reply. Another call waits for its reply, even if it
// has the same deadline.
func TestCancelledCallerReturnsAtOnce(t *testing.T) {
	t.Parallel()
	script := redisx.NewScript("return 1")
	one := []redisx.Request{{Keys: []string{"k"}}}
	for name, requests := range map[string][]redisx.Request{"one call": one, "several calls": append(one, one...)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			underWay := func(ctx context.Context) <-chan error {
				rdb, link := redistest.Proxied(t, testbedtest.Redis(t))
				c, ended := redisx.NewCaller(rdb, time.Minute), make(chan error, 1)
				if err := c.RunAll(t.Context(), script, requests)[0].Err; err != nil { // connected, and the script is known
					t.Fatal(err)
				}
				link.Cut()
				t.Cleanup(link.Heal)
				go func() { ended <- c.RunAll(ctx, script, requests)[0].Err }()
				testbedtest.Eventually(t, "the call to be under way", func() bool { return rdb.PoolStats().IdleConns == 0 })
				return ended
			}
			ctx, cancel := context.WithCancel(all)
			mine, other := underWay(ctx), underWay(all)
			cancel()
			select {
			case err := <-mine:
				if !errors.Is(err, context.Canceled) || !redisx.Uncertain(err) {
					t.Errorf("the cancelled call: %v", err)
				}
			case err := <-other:
				t.Fatalf("the other call ends before the cancelled one: %v", err)
			}
			err := <-other
			if end, _ := all.Deadline(); err == nil || time.Until(end) > 100*time.Millisecond {
				t.Errorf("the other call ended with %v, %v before its deadline", err, time.Until(end))
			}
		})
	}
}

// A server that accepts no connection costs a call its time limit, and not that of the client's dials.
func TestCallWithoutAConnectionEndsInTime(t *testing.T) {
	t.Parallel()
	script, one := redisx.NewScript("return 1"), redisx.Request{Keys: []string{"k"}}
	for name, requests := range map[string][]redisx.Request{"one call": {one}, "several calls": {one, one}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopped, stop := context.WithCancel(t.Context())
			rdb := redis.NewClient(&redis.Options{
				DialTimeout: time.Hour, PoolTimeout: time.Hour, MaxRetries: -1, ContextTimeoutEnabled: true,
				Dialer: func(context.Context, string, string) (net.Conn, error) {
					<-stopped.Done()
					return nil, stopped.Err()
				},
			})
			t.Cleanup(func() { stop(); rdb.Close() })
			ended := make(chan error, 1)
			go func() {
				ended <- redisx.NewCaller(rdb, 100*time.Millisecond).RunAll(t.Context(), script, requests)[0].Err
			}()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("a call without a connection succeeded")
				}
			case <-time.After(30 * time.Second):
				t.Error("the call outlasts its limit")
			}
		})
	}
}
