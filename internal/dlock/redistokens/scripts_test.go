package redistokens_test

import (
	"crypto/rand"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
)

// tokScript runs one of the scripts of tokens for holder a.
func tokScript(t testing.TB, rdb redis.UniversalClient, name, key string, args ...any) *redis.Cmd {
	t.Helper()
	text := ""
	for _, part := range []string{"common", name} {
		lua, err := os.ReadFile("lua/" + part + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		text += string(lua) + "\n"
	}
	k := redistest.SemaphoreKey(key)
	return redis.NewScript(text).Run(t.Context(), rdb,
		[]string{k + ":free", k + ":tokens", k + ":turn", k + ":holders", k + ":reaped", k + ":withheld", k + ":held:a"},
		append([]any{30_000}, args...)...)
}

// tokTake asks for n of 3 tokens, for holder a. It returns the number of fields of the reply, which
// is 1 for a holder that has expired, and the tokens.
func tokTake(t testing.TB, rdb redis.UniversalClient, key string, known, n int) (fields int, tokens []any) {
	t.Helper()
	reply, err := tokScript(t, rdb, "take", key, 3, "a", "", 0, known, 0, n).Slice()
	if err != nil {
		t.Fatal(err)
	}
	if len(reply) == 5 {
		tokens, _ = reply[3].([]any)
	}
	return len(reply), tokens
}

// An expired holder must return under another name, because its old leases could be taken for live. It may keep its
// name if it held nothing.
func TestExpiredHolderReturns(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		if _, tokens := tokTake(t, rdb, key, 0, 2); len(tokens) != 2 {
			t.Fatalf("took %v, want two", tokens)
		}
		redistest.Expire(t, rdb, redistest.SemaphoreKey(key)+":holders")
		if got, err := tokScript(t, rdb, "renew", key, "a").StringSlice(); err != nil || len(got) != 0 {
			t.Errorf("a holder that has expired is renewed: %v, %v", got, err)
		}
		for _, known := range []int{-1, 0, 2} {
			if fields, _ := tokTake(t, rdb, key, known, 1); fields != 1 {
				t.Errorf("a holder that has expired and knows %d tokens takes alongside its old ones", known)
			}
		}
		if n, err := tokScript(t, rdb, "reap", key, 0, "a").Int(); err != nil || n != 2 {
			t.Errorf("reaped %d tokens, %v, want 2", n, err)
		}
		if fields, _ := tokTake(t, rdb, key, 2, 1); fields != 1 {
			t.Error("a holder that was reaped takes while it may consider a lease valid")
		}
		if _, tokens := tokTake(t, rdb, key, 0, 3); len(tokens) != 3 {
			t.Errorf("a holder that has nothing took %v, want three", tokens)
		}
		if n, err := tokScript(t, rdb, "reap", key, 0, "a").Int(); err != nil || n != 0 {
			t.Errorf("reaped %d tokens of a living holder, %v", n, err)
		}
	})
}

// A token in the list that the client does not know of must not be kept alive by it.
func TestStrangeTokenEndsItsHolder(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		tokTake(t, rdb, key, 0, 2)
		if fields, _ := tokTake(t, rdb, key, 1, 1); fields != 1 {
			t.Error("a holder takes although it has lost count")
		}
		if _, tokens := tokTake(t, rdb, key, -1, 1); len(tokens) != 1 {
			t.Errorf("while others are on their way it took %v, want one", tokens)
		}
	})
}

// A holder releases what it has, once.
func TestTokensAreReleasedOnce(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		tokTake(t, rdb, key, 0, 2)
		for _, c := range []struct {
			tokens []any
			want   int
		}{{[]any{"1", "3"}, 1}, {[]any{"1", "2"}, 1}, {[]any{"2", "2", "9", "turn"}, 0}} {
			if n, err := tokScript(t, rdb, "release", key, append([]any{"a"}, c.tokens...)...).Int(); err != nil || n != c.want {
				t.Errorf("release of %v = %d, %v, want %d", c.tokens, n, err, c.want)
			}
		}
		if n, turns := free(t, rdb, key), rdb.LLen(t.Context(), redistest.SemaphoreKey(key)+":turn").Val(); n != 3 || turns != 1 {
			t.Errorf("%d tokens are free, %d turns, want 3 and 1", n, turns)
		}
	})
}

// A failover to a replica that lags can lose tokens that a waiter has set aside. None of them counts, and none counts twice.
func TestLostSparesServeNobody(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := rand.Text()
		tokTake(t, rdb, key, 0, 1) // token 1
		for _, c := range []struct {
			spares []any
			fields int
		}{
			{[]any{"1"}, 5}, {[]any{"2"}, 1}, {[]any{"1", "1"}, 1}, {[]any{"turn"}, 1}, {[]any{"1", "turn"}, 1},
		} {
			args := append([]any{3, "a", "", 0, -1, len(c.spares)}, c.spares...)
			reply, err := tokScript(t, rdb, "take", key, append(args, 1)...).Slice()
			if err != nil || len(reply) != c.fields {
				t.Errorf("with %v set aside: %v, %v, want %d fields", c.spares, reply, err, c.fields)
			}
		}
	})
}

// After a loss of data, a holder returns under another name, whatever it has. Until the end of the TTL, no token reaches the list
// on which clients wait.
func TestTokensAreWithheldAfterALoss(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		var key string
		for _, n := range []int{0, 1} {
			key = rand.Text()
			tokTake(t, rdb, key, 0, n) // by a client that remembers nothing
			reply, err := tokScript(t, rdb, "take", key, 3, "a", "an earlier epoch", 0, n, 0, 1).Slice()
			if err != nil || len(reply) != 1 {
				t.Errorf("an earlier holder that has %d tokens: %v, %v, want the epoch alone", n, reply, err)
			}
		}
		if n, err := tokScript(t, rdb, "release", key, "a", "1").Int(); err != nil || n != 1 {
			t.Errorf("released %d tokens, %v, want 1", n, err)
		}
		withheld := rdb.LLen(t.Context(), redistest.SemaphoreKey(key)+":withheld").Val()
		if n := free(t, rdb, key); n != 0 || withheld != 3 {
			t.Errorf("%d tokens are free and %d withheld, want 0 and 3", n, withheld)
		}
	})
}
