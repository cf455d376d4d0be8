package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/redisx"
)

// empty returns what empties servers of Redis.
func empty(t *testing.T, urls ...string) func(context.Context) error {
	t.Helper()
	var servers []redis.UniversalClient
	for _, u := range urls {
		rdb, err := redisx.New(u)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.Close() })
		servers = append(servers, rdb)
	}
	return func(ctx context.Context) error {
		var errs []error
		for _, rdb := range servers {
			errs = append(errs, rdb.FlushAll(ctx).Err())
		}
		return errors.Join(errs...)
	}
}

// crashing returns what kills a server and starts it again.
func crashing(kill func() error, restart func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(kill(), restart(ctx)) }
}

// faultySale has the responses to customers who ask until they get one.
type faultySale struct {
	client *http.Client

	mu        sync.Mutex
	urls      []string        // of the instances that are there
	kept      map[string]bool // ids of the orders that customers have
	cancelled int
}

func (s *faultySale) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) + s.cancelled
}

// forget takes an instance out.
func (s *faultySale) forget(gone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = append([]string{}, strings.Fields(strings.ReplaceAll(strings.Join(s.urls, " "), gone, ""))...)
}

func (s *faultySale) anywhere() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urls[rand.N(len(s.urls))]
}

// insist asks with one key until somebody answers with something else than that it is busy.
func (s *faultySale) insist(ctx context.Context, key, path, body string) (a answer) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
		patient, cancel := context.WithTimeout(ctx, 3*time.Second) // an instance that is stopped says nothing
		a = ask(patient, s.client, http.MethodPost, s.anywhere()+path, body, "Idempotency-Key", key)
		cancel()
		busy := a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests // without Redis there are no new permits
		if a.err == nil && !busy && !strings.Contains(a.body, "in-flight") {
			return a
		}
		<-time.After(5 * time.Millisecond)
	}
	return a
}

// buy buys one unit, and cancels every third order.
func (s *faultySale) buy(ctx context.Context, key string) error {
	a := s.insist(ctx, key, "/api/v1/orders", oneUnit)
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &o); a.err != nil || a.status != http.StatusCreated || err != nil {
		return fmt.Errorf("order %s: %v", key, a)
	}
	cancels := rand.N(3) == 0
	if cancels {
		if a := s.insist(ctx, key, "/api/v1/orders/"+o.ID+"/cancel", ""); a.err != nil || a.status != http.StatusOK {
			return fmt.Errorf("cancel %s: %v", key, a)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kept[o.ID]:
		return fmt.Errorf("order %s was given to two customers", o.ID)
	case cancels:
		s.cancelled++
	default:
		s.kept[o.ID] = true
	}
	return nil
}
