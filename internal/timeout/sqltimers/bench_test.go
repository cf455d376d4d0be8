package sqltimers_test

import (
	"strconv"
	"testing"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/timeouttest"
)

// benchmark returns a store on MariaDB with rows pending timers, due one per millisecond from now.
func benchmark(b *testing.B, rows int) timeouttest.StoreClient {
	b.Helper()
	db := openMariaDB(b, testbedtest.Database(b), nil)
	c := client(b, db, sqldb.MariaDB())
	const columns = "INSERT INTO timeouts (kind, id, lane, due_at, next_at, trace) "
	for from := 1; from <= rows; from += 100_000 {
		to := strconv.Itoa(min(from+100_000-1, rows))
		fill := columns + "SELECT '" + kind + "', CONCAT('p', LPAD(seq, 35, '0')), 'base', at, at, REPEAT('x', 55) FROM " +
			"(SELECT seq, ROUND(UNIX_TIMESTAMP(NOW(3)) * 1000) + seq AS at FROM seq_" + strconv.Itoa(from) + "_to_" + to + ") AS s"
		if _, err := db.ExecContext(b.Context(), fill); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// fresh returns n identities that no other call returns, of the size of a UUID.
func fresh(call, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		s := strconv.Itoa(call*1000 + i)
		ids[i] = "n-00000000-0000-0000-0000-000000000000"[:36-len(s)] + s
	}
	return ids
}

func perRow(b *testing.B, rows int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkInsert schedules in a transaction, which is flushed at COMMIT.
func BenchmarkInsert(b *testing.B) {
	for _, size := range []int{1, 200} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			c := benchmark(b, 100_000)
			n := 0
			for b.Loop() {
				n++
				tx, err := c.Begin(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				timers := timersOf(fresh(n, size))
				if err := c.Insert(b.Context(), tx, timeout.Base, "", timers); err != nil {
					b.Fatal(err)
				}
				if err := tx.Commit(); err != nil {
					b.Fatal(err)
				}
			}
			perRow(b, n*size)
		})
	}
}

// BenchmarkDelete cancels 200 timers in a transaction.
func BenchmarkDelete(b *testing.B) {
	const size = 200
	c := benchmark(b, 100_000)
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		ids := fresh(n, size)
		if err := c.Insert(b.Context(), nil, timeout.Base, "", timersOf(ids)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		tx, err := c.Begin(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if got, err := c.Delete(b.Context(), tx, kind, ids, nil); got != size || err != nil {
			b.Fatal(got, err)
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, n*size)
}

// BenchmarkClaimOverdue claims 500 of 100,000 overdue timers.
func BenchmarkClaimOverdue(b *testing.B) {
	c := benchmark(b, 100_000)
	n := 0
	for b.Loop() {
		now := time.Now().Add(time.Duration(n+1) * time.Hour) // so that none runs out
		rows, err := c.ClaimOverdue(b.Context(), kind, timeout.Base, now, now.Add(24*time.Hour), 500)
		if err != nil {
			b.Fatal(err)
		}
		n += len(rows)
	}
	perRow(b, n)
}

// BenchmarkMillion measures what reads a table of 1,000,000 timers: all of its pages, as a
// rebuild does, its count, and the search for orphaned partitions.
func BenchmarkMillion(b *testing.B) {
	c := benchmark(b, 1_000_000)
	b.Run("rebuild", func(b *testing.B) {
		n := 0
		for b.Loop() {
			f := timeout.Filter{State: timeout.Open, Limit: 5000}
			for {
				rows, err := c.List(b.Context(), f)
				if err != nil {
					b.Fatal(err)
				}
				n += len(rows)
				if len(rows) < f.Limit {
					break
				}
				f.After = rows[len(rows)-1]
			}
		}
		perRow(b, n)
	})
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Count(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reassign", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Reassign(b.Context(), time.Minute, 1000); err != nil {
				b.Fatal(err)
			}
		}
	})
}
