package redistokens

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/redisx"
)

// reap releases what expired holders have, and returns how many tokens that was.
// With force it takes from the living too.
func (t *Tokens) reap(ctx context.Context, key string, force bool, names ...string) (int, error) {
	args := []any{t.ttl.Milliseconds(), redisx.Flag(force)}
	for _, name := range names {
		args = append(args, name)
	}
	n, _, err := t.calls.Run(ctx, reapScript, t.keys(key, names...), args...)
	back, _ := n.(int64)
	return int(back), err
}

// note has Redis remember that this process uses key, for ReleaseAll of its successor.
func (t *Tokens) note(ctx context.Context, key string) {
	t.mu.Lock()
	p := t.tap(key)
	noted := !p.noted.IsZero() && time.Since(p.noted) < t.forgotten()/4
	p.noted = time.Now()
	t.mu.Unlock()
	if noted || !t.named {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	pipe := t.rdb.Pipeline()
	pipe.SAdd(ctx, t.usedKey(), key)
	pipe.PExpire(ctx, t.usedKey(), t.forgotten())
	if _, err := pipe.Exec(ctx); err != nil {
		t.mu.Lock()
		t.tap(key).noted = time.Time{}
		t.mu.Unlock()
	}
}

// forgotten is for how long Redis remembers what is not used.
func (t *Tokens) forgotten() time.Duration { return max(24*time.Hour, 2*t.ttl) }

// ReleaseAll releases at once what an earlier process with the name of this
// one held, of every key, instead of waiting for its TTL. The earlier process must
// have ended: if it lives it loses its leases, and is notified of it at its next renewal
// only. It returns the first error; what it has not released then is left to the TTL.
func (t *Tokens) ReleaseAll(ctx context.Context) error {
	if !t.named {
		return errors.New("redistokens: ReleaseAll needs Config.Name")
	}
	keys, err := t.rdb.SMembers(ctx, t.usedKey()).Result()
	if err != nil {
		return fmt.Errorf("redistokens: release all of %q: %w", t.name, err)
	}
	for _, key := range keys {
		names, err := t.names(ctx, key)
		var earlier []string
		for _, name := range names {
			mine := strings.HasPrefix(name, t.name+":"+t.client+"-")
			if i := strings.LastIndexByte(name, ':'); i >= 0 && name[:i] == t.name && !mine {
				earlier = append(earlier, name)
			}
		}
		if err == nil && len(earlier) > 0 {
			_, err = t.reap(ctx, key, true, earlier...)
		}
		if err != nil {
			return fmt.Errorf("redistokens: release all of %q: %q: %w", t.name, key, err)
		}
	}
	return nil
}

// Remove deletes the semaphore of key with all of its tokens. Its holders lose their leases, and their next renewal
// reports it. The next client that uses key creates it again. A client that has used key before waits one TTL first,
// because the holders may consider their leases valid until then.
func (t *Tokens) Remove(ctx context.Context, key string) error {
	if err := redisx.CheckKey(key); err != nil {
		return err
	}
	names, err := t.names(ctx, key)
	if err == nil {
		err = t.rdb.Del(ctx, t.keys(key, names...)...).Err()
	}
	if err != nil {
		return fmt.Errorf("redistokens: remove %q: %w", key, err)
	}
	return nil
}

// names returns all holders of key, those that were reaped too.
func (t *Tokens) names(ctx context.Context, key string) ([]string, error) {
	keys := t.keys(key)
	names, err := t.rdb.ZRange(ctx, keys[3], 0, -1).Result()
	if err != nil {
		return nil, err
	}
	reaped, err := t.rdb.ZRange(ctx, keys[4], 0, -1).Result()
	return append(names, reaped...), err
}
