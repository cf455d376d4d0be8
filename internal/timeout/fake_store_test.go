package timeout_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/timeout"
)

// name is the primary key of a row.
type name struct{ kind, id string }

// memStore is a [timeout.Store] in memory, for logic that depends on time. Any tx, also nil, is a transaction of its
// own; real databases are tested end to end.
type memStore struct {
	mu     sync.Mutex
	rows   map[name]timeout.Row
	paused map[string]bool
	beats  map[string]time.Time // by partition
	skew   time.Duration        // of its clock
	down   bool
	scans  int           // that claimed something
	blind  bool          // its overdue scans find nothing
	late   time.Duration // until the reply to an overdue scan arrives
}

func newMemStore() *memStore {
	return &memStore{rows: map[name]timeout.Row{}, paused: map[string]bool{}, beats: map[string]time.Time{}}
}

func (s *memStore) now() time.Time { return time.Now().Add(s.skew).Truncate(time.Millisecond) }

// lock fails while the database is away.
func (s *memStore) lock() error {
	s.mu.Lock()
	if s.down {
		s.mu.Unlock()
		return fmt.Errorf("%w: the test has cut it off", timeout.ErrUnavailable)
	}
	return nil
}

func (s *memStore) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *memStore) Now(context.Context) (time.Time, error) {
	if err := s.lock(); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return s.now(), nil
}

func (s *memStore) Insert(_ context.Context, _ timeout.Tx, partition, trace string, timers []timeout.Timer) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, t := range timers {
		s.rows[name{t.Kind, t.ID}] = timeout.Row{
			Timer: t, Partition: partition, State: timeout.Open, Next: t.Due, Trace: trace, CreatedAt: s.now(),
		}
	}
	return nil
}

func (s *memStore) Delete(_ context.Context, _ timeout.Tx, kind string, ids []string, due []time.Time) (int, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for i, id := range ids {
		if r, ok := s.rows[name{kind, id}]; ok && (due == nil || !r.Due.After(due[i])) {
			delete(s.rows, name{kind, id})
			n++
		}
	}
	return n, nil
}

func (s *memStore) Move(_ context.Context, _ timeout.Tx, kind, id string, due time.Time) (timeout.Row, error) {
	if err := s.lock(); err != nil {
		return timeout.Row{}, err
	}
	defer s.mu.Unlock()
	r, ok := s.rows[name{kind, id}]
	if !ok {
		return r, timeout.ErrNotFound
	}
	r.Due, r.Next, r.Attempt, r.State = due, due, 0, timeout.Open
	s.rows[name{kind, id}] = r
	return r, nil
}

func (s *memStore) Load(_ context.Context, kind string, ids []string) ([]timeout.Row, time.Time, error) {
	if err := s.lock(); err != nil {
		return nil, time.Time{}, err
	}
	defer s.mu.Unlock()
	var rows []timeout.Row
	for _, id := range ids {
		if r, ok := s.rows[name{kind, id}]; ok {
			rows = append(rows, r)
		}
	}
	return rows, s.now(), nil
}

func (s *memStore) fail(kind string, later []timeout.Later, f func(*timeout.Row, timeout.Later)) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, l := range later {
		r, ok := s.rows[name{kind, l.ID}]
		if !ok || r.State != timeout.Open || r.Due.After(l.Due) {
			continue
		}
		r.Attempt, r.LastError = l.Attempt, l.Error
		f(&r, l)
		s.rows[name{kind, l.ID}] = r
	}
	return nil
}

func (s *memStore) Delay(_ context.Context, kind string, later []timeout.Later) error {
	return s.fail(kind, later, func(r *timeout.Row, l timeout.Later) { r.Next = l.At })
}

func (s *memStore) MarkDead(_ context.Context, kind string, later []timeout.Later) error {
	return s.fail(kind, later, func(r *timeout.Row, _ timeout.Later) { r.State = timeout.Dead })
}

// sorted returns the rows that f chooses, in the order of Next, Kind and ID.
func (s *memStore) sorted(f func(timeout.Row) bool) []timeout.Row {
	var rows []timeout.Row
	for _, r := range s.rows {
		if f(r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, order)
	return rows
}

func order(a, b timeout.Row) int {
	return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

func (s *memStore) ClaimOverdue(
	_ context.Context, kind, partition string, before, until time.Time, limit int,
) ([]timeout.Row, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer time.Sleep(s.late)
	defer s.mu.Unlock()
	rows := s.sorted(func(r timeout.Row) bool {
		return !s.blind && r.Kind == kind && r.Partition == partition && r.State == timeout.Open && r.Next.Before(before)
	})
	rows = rows[:min(limit, len(rows))]
	for i := range rows {
		rows[i].Attempt++
		changed := rows[i]
		changed.Next = until
		s.rows[name{changed.Kind, changed.ID}] = changed
	}
	if len(rows) > 0 {
		s.scans++
	}
	return rows, nil
}

func (s *memStore) List(_ context.Context, f timeout.Filter) ([]timeout.Row, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	rows := s.sorted(func(r timeout.Row) bool {
		return (f.Kind == "" || r.Kind == f.Kind) && (f.State == "" || r.State == f.State) &&
			(f.Until.IsZero() || !r.Next.After(f.Until)) && (f.After.ID == "" || order(r, f.After) > 0)
	})
	return rows[:min(cmp.Or(f.Limit, 100), len(rows))], nil
}

func (s *memStore) Count(context.Context) (map[timeout.Shard]map[timeout.State]int, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	counts := map[timeout.Shard]map[timeout.State]int{}
	for _, r := range s.rows {
		k := timeout.Shard{Kind: r.Kind, Partition: r.Partition}
		if counts[k] == nil {
			counts[k] = map[timeout.State]int{}
		}
		counts[k][r.State]++
	}
	return counts, nil
}
