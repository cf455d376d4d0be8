package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// poolSize lets 32 callers of one client have a connection each.
const poolSize = 32

// target is the server that everything runs on.
type target struct {
	opts  *redis.Options
	admin *redis.Client
}

func openTarget(address string) (*target, error) {
	opts, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	opts.PoolSize = poolSize
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &target{opts: opts, admin: redis.NewClient(opts)}, nil
}

func (t *target) close() { t.admin.Close() }

// session is the clients of one run.
type session struct {
	clients []*client
	pools   []*redis.Client
}

// open makes n clients of s with a pool each. All subjects have the same options.
func (t *target) open(s subject, n int) (*session, error) {
	o := &session{}
	for range n {
		opts := *t.opts
		rdb := redis.NewClient(&opts)
		o.pools = append(o.pools, rdb)
		c, err := s.open(rdb)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		o.clients = append(o.clients, c)
	}
	return o, nil
}

// close ends the clients, and then their connections.
func (o *session) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var failed error
	for i, c := range o.clients {
		if c.close != nil {
			if err := c.close(ctx); err != nil {
				failed = err
			}
		}
		o.pools[i].Close()
	}
	return failed
}

// usage is what the server, and this process, have done so far.
type usage struct {
	calls map[string]int64 // by command, those that scripts make included
	cpu   time.Duration
	own   time.Duration // processor time of this process
}

func (t *target) usage(ctx context.Context) (usage, error) {
	info, err := t.info(ctx, "commandstats", "cpu")
	if err != nil {
		return usage{}, err
	}
	u := usage{calls: map[string]int64{}, own: ownCPU()}
	for name, value := range info {
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			if u.calls[command], err = strconv.ParseInt(calls, 10, 64); err != nil {
				return usage{}, fmt.Errorf("commandstats: %w", err)
			}
		}
	}
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			return usage{}, fmt.Errorf("%s: %w", name, err)
		}
		u.cpu += time.Duration(seconds * float64(time.Second))
	}
	return u, nil
}

// sent counts, since before, what clients have sent, and all calls. Scripts call
// commands too, and the server counts both in one: what clients send is known by
// name, as no script here calls one of these.
func (u usage) sent(before usage, s subject) (commands, all int64) {
	for name, n := range u.calls {
		n -= before.calls[name]
		switch name {
		case "info":
			continue // is ours
		case "eval", "evalsha", "ping", "subscribe", "hello", "client|setinfo", s.sends:
			commands += n
		}
		all += n
	}
	return commands, all
}

// info returns the fields of sections of INFO.
func (t *target) info(ctx context.Context, sections ...string) (map[string]string, error) {
	fields := map[string]string{}
	for _, section := range sections {
		text, err := t.admin.Info(ctx, section).Result()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				fields[name] = value
			}
		}
	}
	return fields, nil
}
