package zklock_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// mutex is a lock of one key, of this package or of the client library.
type mutex interface {
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
}

type own struct {
	l     dlock.Locker
	key   string
	lease *dlock.Lease
}

func (o *own) lock(ctx context.Context) (err error) {
	o.lease, err = o.l.Acquire(ctx, o.key)
	return err
}

func (o *own) unlock(ctx context.Context) error { return o.lease.Release(ctx) }

type peer struct{ l *zk.Lock }

func (p peer) lock(context.Context) error { return p.l.Lock() }

func (p peer) unlock(context.Context) error { return p.l.Unlock() }

// process opens a session and returns a way to make mutexes of it.
type process func(b *testing.B, addr string) func(key string) mutex

func benchmarks() map[string]process {
	return map[string]process{
		"zklock": func(b *testing.B, addr string) func(string) mutex {
			l := locker(b, session(b, addr), zklock.Config{})
			return func(key string) mutex { return &own{l: l, key: key} }
		},
		"library": func(b *testing.B, addr string) func(string) mutex {
			c := raw(b, addr)
			return func(key string) mutex { return peer{zk.NewLock(c, "/peer/"+key, zk.WorldACL(zk.PermAll))} }
		},
	}
}

// take locks and unlocks each mutex by a goroutine of its own, b.N times in all.
func take(b *testing.B, all []mutex) {
	b.Helper()
	for _, m := range all { // what is made once, is made
		if err := m.lock(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := m.unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := m.lock(b.Context()); err != nil {
					b.Error(err)
					return
				}
				if err := m.unlock(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "locks/s")
}

// BenchmarkUncontended takes and releases keys that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	server := testbedtest.StartZooKeeper(b, testbed.ZooKeeperConfig{})
	for name, open := range benchmarks() {
		for _, goroutines := range []int{1, 32} {
			b.Run(name+"-"+strconv.Itoa(goroutines), func(b *testing.B) {
				mutexOf := open(b, server.Addr())
				var all []mutex
				for range goroutines {
					all = append(all, mutexOf(rand.Text()))
				}
				take(b, all)
			})
		}
	}
}

// BenchmarkContended has processes take turns at one key.
func BenchmarkContended(b *testing.B) {
	server := testbedtest.StartZooKeeper(b, testbed.ZooKeeperConfig{})
	for name, open := range benchmarks() {
		for _, size := range [][2]int{{2, 1}, {8, 1}, {1, 8}, {8, 4}} {
			b.Run(name+"-"+strconv.Itoa(size[0])+"x"+strconv.Itoa(size[1]), func(b *testing.B) {
				key := rand.Text()
				var all []mutex
				for range size[0] {
					mutexOf := open(b, server.Addr())
					for range size[1] {
						all = append(all, mutexOf(key))
					}
				}
				take(b, all)
			})
		}
	}
}

// BenchmarkHandOff measures from a release to the grant of the waiter, in another process.
func BenchmarkHandOff(b *testing.B) {
	server := testbedtest.StartZooKeeper(b, testbed.ZooKeeperConfig{})
	for name, open := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			key := rand.Text()
			a, c := open(b, server.Addr())(key), open(b, server.Addr())(key)
			admin := raw(b, server.Addr())
			path := "/shop/locks/" + key
			if name == "library" {
				path = "/peer/" + key
			}
			var total time.Duration
			for range b.N {
				if err := a.lock(b.Context()); err != nil {
					b.Fatal(err)
				}
				granted := make(chan time.Time, 1)
				go func() {
					if err := c.lock(b.Context()); err != nil {
						b.Error(err)
					}
					granted <- time.Now()
				}()
				for { // until the other one waits
					names, _, err := admin.Children(path)
					if err != nil {
						b.Fatal(err)
					}
					if len(names) == 2 {
						break
					}
				}
				time.Sleep(2 * time.Millisecond)
				start := time.Now()
				if err := a.unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
				total += (<-granted).Sub(start)
				if err := c.unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(total.Microseconds())/float64(b.N), "us/handoff")
		})
	}
}
