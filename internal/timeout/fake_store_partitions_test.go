package timeout_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/timeout"
)

var _ timeout.Store = (*memStore)(nil)

func (s *memStore) Redrive(_ context.Context, kind string, ids []string) ([]timeout.Row, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	rows := s.sorted(func(r timeout.Row) bool {
		return r.Kind == kind && r.State == timeout.Dead && slices.Contains(ids, r.ID)
	})
	for i := range rows {
		rows[i].State, rows[i].Attempt = timeout.Open, 0
		rows[i].Due, rows[i].Next = s.now(), s.now()
		s.rows[name{kind, rows[i].ID}] = rows[i]
	}
	return rows, nil
}

func (s *memStore) SetPaused(_ context.Context, kind string, paused bool) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.paused[kind] = paused
	return nil
}

func (s *memStore) Paused(context.Context) ([]string, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var kinds []string
	for kind, paused := range s.paused {
		if paused {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

func (s *memStore) Heartbeat(_ context.Context, partition, _ string) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.beats[partition] = s.now()
	return nil
}

func (s *memStore) Reassign(_ context.Context, silent time.Duration, limit int) (int, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.sorted(func(r timeout.Row) bool {
		last := s.beats[r.Partition]
		if last.IsZero() {
			last = r.CreatedAt // a partition that never had a consumer
		}
		return r.State == timeout.Open && r.Partition != timeout.Base && s.now().Sub(last) >= silent
	}) {
		if n == limit {
			break
		}
		r.Partition = timeout.Base
		s.rows[name{r.Kind, r.ID}] = r
		n++
	}
	return n, nil
}

// heartbeats returns the partitions that have had any.
func (s *memStore) heartbeats() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.beats))
}

// open returns how many timers are neither worked off nor dead.
func (s *memStore) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sorted(func(r timeout.Row) bool { return r.State == timeout.Open }))
}
