package main

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"example.com/shop/bench/measure"
)

// callers is how many goroutines schedule when each waits for its own answer.
const callers = 64

const taskType = "order.expire"

// tuned is asynq for precision: it looks every 10 ms instead of every 5 s and every
// second, and has enough workers.
func tuned() asynq.Config {
	return asynq.Config{Concurrency: 64, DelayedTaskCheckInterval: 10 * time.Millisecond, TaskCheckInterval: 10 * time.Millisecond}
}

// asynqSubject is asynq with a configuration of its server.
func asynqSubject(name string, cfg asynq.Config) subject {
	return subject{name: name, writers: 32, chunk: 1, open: func(_ context.Context, s *servers, fired func(alarm, time.Time)) (*queue, error) {
		client := asynq.NewClient(asynqOptions(s.redis))
		server, err := asynqServer(s.redis, cfg, func(payload []byte) {
			now := time.Now()
			fired(alarm{int(binary.BigEndian.Uint64(payload)), time.UnixMilli(int64(binary.BigEndian.Uint64(payload[8:])))}, now)
		})
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		return &queue{
			schedule: func(ctx context.Context, alarms []alarm) error {
				for _, a := range alarms {
					payload := binary.BigEndian.AppendUint64(nil, uint64(a.n))
					payload = binary.BigEndian.AppendUint64(payload, uint64(a.due.UnixMilli()))
					if _, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, payload), asynq.ProcessAt(a.due)); err != nil {
						return err
					}
				}
				return nil
			},
			close: func(context.Context) error {
				server.Shutdown()
				return client.Close()
			},
		}, nil
	}}
}

// asynqServer starts a server that calls handle with each payload.
func asynqServer(s *measure.Server, cfg asynq.Config, handle func(payload []byte)) (*asynq.Server, error) {
	cfg.LogLevel = asynq.FatalLevel
	server := asynq.NewServer(asynqOptions(s), cfg)
	return server, server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}))
}

// asynqOptions are those of the other clients, with a connection for each caller.
func asynqOptions(s *measure.Server) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{
		Addr: s.Options.Addr, Username: s.Options.Username, Password: s.Options.Password,
		DB: s.Options.DB, TLSConfig: s.Options.TLSConfig, PoolSize: callers,
	}
}
