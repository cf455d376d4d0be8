package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/show/buyers"
)

// Cluster is what the instances know of each other. Its JSON form is public.
type Cluster struct {
	Members []string `json:"members"`
	Leader  string   `json:"leader,omitempty"`
	Term    uint64   `json:"term,omitempty"`

	urls []string
}

// gathering is how long instances may take to know each other and to elect a leader.
const gathering = 30 * time.Second

// gather asks the first instance for the others, until it knows n members and their leader. When its time is over, it
// returns the members that it knows. With n = 0 it asks once.
func gather(ctx context.Context, s *buyers.Shop, n int) (c Cluster, err error) {
	for end := time.Now().Add(gathering); ; {
		if c, err = members(ctx, s); err != nil {
			return c, err
		}
		if n == 0 || len(c.Members) == n && c.Leader != "" || time.Now().After(end) {
			return c, nil
		}
		if !backoff.Sleep(ctx, lookEvery) {
			return c, context.Cause(ctx)
		}
	}
}

// members asks once.
func members(ctx context.Context, s *buyers.Shop) (c Cluster, err error) {
	status, _, answer, err := s.Send(ctx, http.MethodGet, s.URLs()[0]+"/api/v1/cluster", nil)
	if err != nil {
		return c, err
	}
	var known struct {
		Members []struct{ Name, Address string }
		Leader  *struct {
			Name string
			Term uint64
		}
	}
	if err := json.Unmarshal(answer, &known); err != nil || status != http.StatusOK {
		return c, fmt.Errorf("ask for the members: status %d: %s", status, bytes.TrimSpace(answer))
	}
	for _, m := range known.Members {
		c.Members = append(c.Members, m.Name)
		c.urls = append(c.urls, "http://"+m.Address)
	}
	if known.Leader != nil {
		c.Leader, c.Term = known.Leader.Name, known.Leader.Term
	}
	return c, nil
}
