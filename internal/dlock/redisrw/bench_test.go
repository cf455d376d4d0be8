package redisrw_test

import (
	"context"
	"crypto/rand"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// BenchmarkRW is a pair of acquire and release: of one reader, of one writer, and of 16 goroutines of which every fourth
// writes.
func BenchmarkRW(b *testing.B) {
	l := redistest.RW(b, redistest.Client(b, testbedtest.Redis(b)), redisrw.Config{})
	for name, take := range map[string]func(context.Context, string) (*dlock.Lease, error){"reader": l.AcquireRead, "writer": l.Acquire} {
		b.Run(name, func(b *testing.B) {
			key := rand.Text()
			for b.Loop() {
				if err := redistest.MustTake(b, take, key).Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("mixed", func(b *testing.B) {
		key := rand.Text()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				take := l.AcquireRead
				if i%4 == 0 {
					take = l.Acquire
				}
				if err := redistest.MustTake(b, take, key).Release(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
