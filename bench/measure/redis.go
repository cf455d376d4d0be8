package measure

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/platform/testbed"
)

// PoolSize lets 32 callers of one client have a connection each.
const PoolSize = 32

// Server is the Redis server that everything runs on.
type Server struct {
	Options *redis.Options // for every subject the same
	Admin   *redis.Client
	Started *testbed.Redis // nil unless it is this program's
}

// OpenServer connects to the server at a redis:// address, or with an empty one
// starts a redis-server of its own, without persistence.
func OpenServer(ctx context.Context, address string) (*Server, error) {
	s := &Server{}
	if address == "" {
		var err error
		if s.Started, err = testbed.StartRedis(ctx, testbed.RedisConfig{}); err != nil {
			return nil, err
		}
		address = s.Started.URL()
	}
	opts, err := redis.ParseURL(address)
	if err != nil {
		s.Close()
		return nil, err
	}
	opts.PoolSize = PoolSize
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	s.Options, s.Admin = opts, redis.NewClient(opts)
	return s, nil
}

// Client returns a new client with a pool of its own.
func (s *Server) Client() *redis.Client {
	opts := *s.Options
	return redis.NewClient(&opts)
}

// Close ends the connection, and the server if it is this program's.
func (s *Server) Close() {
	if s.Admin != nil {
		s.Admin.Close()
	}
	if s.Started != nil {
		s.Started.Close()
	}
}

// Usage is what the server, and this process, have done so far.
type Usage struct {
	Calls map[string]int64 // by command, those that scripts make included
	CPU   time.Duration
	Own   time.Duration // processor time of this process
}

// Usage asks the server.
func (s *Server) Usage(ctx context.Context) (Usage, error) {
	info, err := s.Info(ctx, "commandstats", "cpu")
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Calls: map[string]int64{}, Own: OwnCPU()}
	for name, value := range info {
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			if u.Calls[command], err = strconv.ParseInt(calls, 10, 64); err != nil {
				return Usage{}, fmt.Errorf("commandstats: %w", err)
			}
		}
	}
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			return Usage{}, fmt.Errorf("%s: %w", name, err)
		}
		u.CPU += time.Duration(seconds * float64(time.Second))
	}
	return u, nil
}

// Info returns the fields of sections of INFO.
func (s *Server) Info(ctx context.Context, sections ...string) (map[string]string, error) {
	fields := map[string]string{}
	for _, section := range sections {
		text, err := s.Admin.Info(ctx, section).Result()
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
