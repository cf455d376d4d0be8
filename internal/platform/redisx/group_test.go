package redisx_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// held keeps the first pipeline until it may go, and counts the commands of the later ones.
type held struct {
	first    atomic.Bool
	release  chan struct{}
	commands atomic.Int64
}

func (h *held) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	if h.first.CompareAndSwap(false, true) {
		<-h.release
	} else {
		for _, cmd := range cmds { // a new connection sends commands of its own
			if strings.HasPrefix(cmd.Name(), "eval") && cmd.Args()[3] != "first" {
				h.commands.Add(1)
			}
		}
	}
	return send(ctx, cmds)
}

// collected makes calls that are collected while another one is under way, and returns how many commands they became.
func collected(t *testing.T, rdb redis.UniversalClient, start func(*redisx.Caller) []*redisx.Call) (calls []*redisx.Call, commands int64) {
	t.Helper()
	h := &held{release: make(chan struct{})}
	rdb.AddHook(testbedtest.RoundTrips(h.roundTrip))
	caller := redisx.NewCaller(rdb, time.Minute)
	first := caller.Start(t.Context(), redisx.NewScript("return 1"), []string{"first"})
	testbedtest.Eventually(t, "the first pipeline to be sent", h.first.Load)
	calls = start(caller)
	close(h.release)
	for _, c := range append(calls, first) {
		c.Wait() // the test reads the results
	}
	return calls, h.commands.Load()
}

func onServers(t *testing.T, test func(*testing.T, string)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) { t.Parallel(); test(t, testbedtest.Redis(t)) })
	t.Run("embedded", func(t *testing.T) { t.Parallel(); test(t, "redis://"+miniredis.RunT(t).Addr()) })
}

func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := redisx.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

var kinds = redisx.NewScript(`
if ARGV[1] == 'number' then return 7 end
if ARGV[1] == 'list' then return {1, 'a', {2}} end
if ARGV[1] == 'MINE' or ARGV[1] == 'OOM' or ARGV[1] == 'READONLY' then return redis.error_reply(ARGV[1] .. ' of ' .. KEYS[1]) end
if ARGV[1] == 'fail' then redis.call('SET', KEYS[1], 'x'); return redis.call('LPUSH', KEYS[1], 'y') end
if ARGV[1] == 'text' then return KEYS[1] .. KEYS[2] .. ARGV[2] end`)

// Calls that share a command have the replies that they would have alone. One that fails leaves the others alone.
func TestCallsOfAScriptAreOneCommand(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		t.Helper()
		rdb := client(t, url)
		asked := []string{"number", "list", "MINE", "fail", "OOM", "nothing", "text", "READONLY", "text"}
		keys := func(i int) []string { return []string{fmt.Sprintf("{k}%d", i), fmt.Sprintf("{k}other%d", i)} }
		reply := func(reply any, err error) string {
			if err != nil && err != redis.Nil { //nolint:errorlint // As it came.
				code, _, _ := strings.Cut(err.Error(), " ")
				return "error " + code
			}
			return fmt.Sprint(reply, err)
		}
		for round, flushed := range []bool{false, false, true} {
			if flushed {
				if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			own := client(t, url)
			calls, commands := collected(t, own, func(c *redisx.Caller) (calls []*redisx.Call) {
				for i, kind := range asked {
					calls = append(calls, c.Start(t.Context(), kinds, keys(i), kind, i))
				}
				return calls
			})
			if want := []int64{2, 1, 2}[round]; commands != want { // once more for an unknown script
				t.Errorf("round %d: %d commands, want %d", round, commands, want)
			}
			for i, c := range calls {
				got, _, err := c.Wait()
				want, wantErr := kinds.Run(t.Context(), rdb, keys(i), []any{asked[i], i})
				if diff := cmp.Diff(reply(want, wantErr), reply(got, err)); diff != "" {
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
		calls, commands := collected(t, client(t, url), func(c *redisx.Caller) (calls []*redisx.Call) {
			for i := range 4 {
				calls = append(calls, c.Start(t.Context(), refused, []string{fmt.Sprint("k", i)}))
			}
			for i := range 4 {
				args := make([]any, 1+i) // so each is a command of its own
				args[0] = i
				for j := range args[1:] {
					args[1+j] = 0
				}
				calls = append(calls, c.Start(t.Context(), echo, []string{fmt.Sprint("k", 4+i)}, args...))
			}
			return calls
		})
		for i, c := range calls {
			got, _, err := c.Wait()
			if i < 4 && !redis.HasErrorPrefix(err, "OOM") || i >= 4 && (err != nil || got != fmt.Sprint(i-4)) {
				t.Errorf("call %d: %v, %v", i, got, err)
			}
		}
		if commands < 5 {
			t.Errorf("%d commands, want 5 at least", commands)
		}
	})
}

// Calls with a common key are made in their order, whatever their scripts are.
func TestCallsWithACommonKeyKeepTheirOrder(t *testing.T) {
	t.Parallel()
	scripts := []redisx.Script{
		redisx.NewScript("return redis.call('APPEND', KEYS[1], 'ab')"),
		redisx.NewScript("return redis.call('APPEND', KEYS[1], 'c')"),
		redisx.NewScript("return redis.call('STRLEN', KEYS[1])"),
	}
	onServers(t, func(t *testing.T, url string) {
		t.Helper()
		const n = 200
		rdb, prefix := client(t, url), fmt.Sprint(rand.Uint64())
		var want []int64
		calls, commands := collected(t, rdb, func(c *redisx.Caller) (calls []*redisx.Call) {
			lengths := map[string]int64{}
			for range n {
				script, key := rand.IntN(len(scripts)), fmt.Sprint(prefix, rand.IntN(30))
				lengths[key] += []int64{2, 1, 0}[script]
				want = append(want, lengths[key])
				calls = append(calls, c.Start(t.Context(), scripts[script], []string{key}))
			}
			return calls
		})
		for i, c := range calls {
			if got, _, err := c.Wait(); err != nil || got != want[i] {
				t.Errorf("call %d: %v, %v; want %d", i, got, err, want[i])
			}
		}
		t.Logf("%d calls in %d commands", n, commands)
		if commands > n/2 {
			t.Errorf("%d calls were %d commands", n, commands)
		}
	})
}

// slots refuses commands with keys of several slots, as a proxy of a cluster does.
type slots struct{ refused atomic.Int64 }

type crossSlotError struct{}

func (crossSlotError) Error() string { return "CROSSSLOT Keys in request don't hash to the same slot" }
func (crossSlotError) RedisError()   {}

func (s *slots) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	var taken []redis.Cmder
	for _, cmd := range cmds {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") && args[2].(int) > 1 {
			cmd.SetErr(crossSlotError{})
			s.refused.Add(1)
		} else {
			taken = append(taken, cmd)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return send(ctx, taken)
}

// A cluster that pretends to be one server refuses a command with keys of several slots, once.
func TestCallsOfSeveralSlotsAreMadeApart(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		t.Helper()
		rdb, s, prefix := client(t, url), &slots{}, fmt.Sprint(rand.Uint64())
		rdb.AddHook(testbedtest.RoundTrips(s.roundTrip))
		script := redisx.NewScript("return redis.call('INCR', KEYS[1])")
		var caller *redisx.Caller
		start := func(c *redisx.Caller) (calls []*redisx.Call) {
			caller = c
			for i := range 20 {
				calls = append(calls, c.Start(t.Context(), script, []string{fmt.Sprint(prefix, i%10)}))
			}
			return calls
		}
		calls, _ := collected(t, rdb, start)
		for i, c := range append(calls, start(caller)...) {
			if got, _, err := c.Wait(); err != nil || got != int64(1+i/10) {
				t.Errorf("call %d: %v, %v", i, got, err)
			}
		}
		if n := s.refused.Load(); n != 1 {
			t.Errorf("%d commands were refused", n)
		}
	})
}
