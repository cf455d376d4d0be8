package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/storeurl"
)

// rights does what every use of Redis needs: it runs a script that writes.
var rights = redis.NewScript(`redis.call('SET', KEYS[1], '1', 'PX', 1000) return redis.call('DEL', KEYS[1])`)

const rightsKey = "shop:start"

// usable waits until rdb answers, and returns why it cannot be used: the user has no rights, the server is a replica, or
// it may evict keys.
func usable(ctx context.Context, rdb redis.UniversalClient, log *slog.Logger) error {
	err := await(ctx, log, func() error { return canWrite(ctx, rdb) })
	if err != nil {
		return fmt.Errorf("%w: %s", err, whyNot(err))
	}
	if err := refusedMessages(ctx, rdb); err != nil {
		log.WarnContext(ctx, "redis refuses notifications, so instances poll: "+pollsOnly, slog.String("error", err.Error()))
	}
	return requireNoEviction(ctx, rdb, log)
}

// pollsOnly says what to change if [refusedMessages] returns an error.
const pollsOnly = "give the user +@pubsub and the channels shop:*"

// refusedMessages returns why the user may receive no messages, or nil. A server that does not respond refuses nothing.
func refusedMessages(ctx context.Context, rdb redis.UniversalClient) error {
	messages := rdb.Subscribe(ctx, rightsKey)
	defer messages.Close()
	if _, err := messages.ReceiveTimeout(ctx, time.Second); redisx.Refused(err) {
		return err
	}
	return nil
}

// canWrite returns why no script can write, or nil.
func canWrite(ctx context.Context, rdb redis.UniversalClient) error {
	return rights.Run(ctx, rdb, []string{rightsKey}).Err()
}

// whyNot says what to change if [canWrite] returns err.
func whyNot(err error) string {
	hint := storeurl.Hint(err)
	switch {
	case hint != "":
	case unreachable(err):
		hint = "check --redis, and that the server runs"
	default:
		hint = "check --redis, and that its user may run scripts and write"
	}
	return hint
}

// requireNoEviction returns an error if rdb may delete leases that have not expired. If the server does not tell, it logs
// a warning.
func requireNoEviction(ctx context.Context, rdb redis.UniversalClient, log *slog.Logger) error {
	policy, err := evictionPolicy(ctx, rdb)
	if err != nil {
		log.WarnContext(ctx, "redis does not tell its maxmemory-policy: make sure that it is noeviction", slog.String("error", err.Error()))
		return nil
	}
	if policy != "noeviction" {
		return fmt.Errorf("maxmemory-policy is %s and may evict locks; set it to noeviction", policy)
	}
	return nil
}

// evictionPolicy asks by INFO, which users of managed servers may run, and otherwise by CONFIG.
func evictionPolicy(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	info, err := rdb.Info(ctx, "memory").Result()
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if policy, ok := strings.CutPrefix(lines.Text(), "maxmemory_policy:"); ok {
			return strings.TrimSpace(policy), nil
		}
	}
	config, asked := rdb.ConfigGet(ctx, "maxmemory-policy").Result()
	if policy, ok := config["maxmemory-policy"]; ok {
		return policy, nil
	}
	return "", errors.Join(err, asked)
}
