package redisbus_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// payload is about as long as that of an event of the service.
var payload = strings.Repeat("x", 200)

// opened returns two buses on a server of their own, and n subscriptions at the second one.
func opened(b *testing.B, n, queue int) (says *redisbus.Bus, all []*broadcast.Subscription) {
	b.Helper()
	server := testbedtest.StartRedis(b, testbed.RedisConfig{})
	says = bus(b, client(b, server.URL()), redisbus.Config{})
	hears := bus(b, client(b, server.URL()), redisbus.Config{Queue: queue})
	start(b, says)
	start(b, hears)
	for range n {
		all = append(all, subscribe(b, hears, "t"))
	}
	return says, all
}

// BenchmarkLatency publishes a message when all subscriptions have the one before. What is
// reported is the time from Publish until the last of them has it.
func BenchmarkLatency(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("subscriptions=%d", n), func(b *testing.B) {
			says, all := opened(b, n, 0)
			heard := make(chan struct{}, n)
			var wg sync.WaitGroup
			for _, s := range all {
				wg.Go(func() {
					for {
						e, err := s.Next(b.Context())
						if err != nil {
							return
						}
						if e.Missed == nil {
							heard <- struct{}{}
						}
					}
				})
			}
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				if err := says.Publish("t", payload); err != nil {
					b.Fatal(err)
				}
				for range n {
					<-heard
				}
				took = append(took, time.Since(begin))
			}
			b.StopTimer()
			for _, s := range all {
				s.Close()
			}
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}

// BenchmarkThroughput publishes as fast as messages are sent. Subscriptions that cannot keep
// up with it are told; how much they got is reported.
func BenchmarkThroughput(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("subscriptions=%d", n), func(b *testing.B) {
			says, all := opened(b, n, 4096)
			var delivered, missed atomic.Int64
			var wg sync.WaitGroup
			for _, s := range all {
				wg.Go(func() {
					for {
						e, err := s.Next(b.Context())
						switch {
						case err != nil:
							return
						case e.Missed != nil:
							missed.Add(int64(e.Missed.Count))
						case e.Message.Payload == "":
							return
						default:
							delivered.Add(1)
						}
					}
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for says.Publish("t", payload) != nil { // the outbox is full
					missed.Add(int64(n))
					time.Sleep(time.Millisecond)
				}
			}
			last := make(chan struct{})
			go func() {
				defer close(last)
				wg.Wait()
			}()
			for done := false; !done; {
				says.Publish("t", "") // until all have it
				select {
				case <-last:
					done = true
				case <-time.After(10 * time.Millisecond):
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(delivered.Load())/b.Elapsed().Seconds(), "deliveries/s")
			b.ReportMetric(100*float64(delivered.Load())/float64(b.N*n), "%delivered")
		})
	}
}

// BenchmarkPublish is what publishing costs the goroutine that does it.
func BenchmarkPublish(b *testing.B) {
	says, _ := opened(b, 0, 0)
	b.ReportAllocs()
	for b.Loop() {
		_ = says.Publish("t", payload)
	}
}
