package redisrw_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// One reader more than there are permits waits, until one of the others releases.
func TestOneReaderMoreWaits(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, key := redistest.RW(t, redistest.Client(t, testbedtest.Redis(t)), redisrw.Config{TTL: time.Minute}), rand.Text()
		var readers []*dlock.Lease
		for range redisrw.Readers {
			readers = append(readers, redistest.MustTake(t, l.TryAcquireRead, key))
		}
		if _, err := l.TryAcquireRead(t.Context(), key); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("reader %d: %v, want ErrHeld", redisrw.Readers+1, err)
		}
		if err := readers[0].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		redistest.MustTake(t, l.TryAcquireRead, key)
	})
}

// A resource that compares fencing tokens refuses a writer whose lease has expired, whoever came after it.
func TestExpiredWriterIsFenced(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		l := redistest.RW(t, rdb, redisrw.Config{})
		late := redistest.MustTake(t, l.Acquire, key)
		redistest.Expire(t, rdb, redistest.RWKey(key))
		reader := redistest.MustTake(t, l.TryAcquireRead, key)
		if late.Fence().Passes(reader.Fence()) {
			t.Errorf("the token %d passes that of a later reader, %d", late.Fence().Token, reader.Fence().Token)
		}
		reader.Release(t.Context())
		writer := redistest.MustTake(t, l.TryAcquire, key)
		if late.Fence().Passes(writer.Fence()) || writer.Fence().Token <= reader.Fence().Token {
			t.Errorf("tokens %d, %d, %d, want each greater than the last", late.Fence().Token, reader.Fence().Token, writer.Fence().Token)
		}
	})
}

// A server that forgets the scripts costs no renewal. One that loses its data costs no order of the writers' tokens.
func TestRWOnAServerThatForgets(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb := redistest.Client(t, server.URL())
		l, key := redistest.RW(t, rdb, redisrw.Config{}), rand.Text()
		reader := redistest.MustTake(t, l.AcquireRead, key)
		for range 4 {
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			<-time.After(ttl / 2)
			if err := reader.Err(); err != nil {
				t.Fatalf("without scripts: %v", err)
			}
		}
		reader.Release(t.Context())
		writer := redistest.MustTake(t, l.Acquire, key)
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		next := redistest.MustTake(t, l.Acquire, key)
		if next.Fence().Token <= writer.Fence().Token {
			testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), writer.Fence())
		}
		if writer.Err() == nil {
			t.Error("two writers, and the first is not notified")
		}
	})
}
