package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/show/buyers"
)

// Cluster is what the instances know of each other. Its JSON form is public.
type Cluster struct {
	Members []string `json:"members"`
	Leader  string   `json:"leader,omitempty"`
	Term    uint64   `json:"term,omitempty"`
}

// gathering is how long instances may take to know each other and to elect a leader.
const gathering = 30 * time.Second

// gather asks the first instance for the others, until the members are the instances at the URLs own, and one of them
// leads. Dead instances of an earlier demo are members until their rows expire. When its time is over, it returns the
// members that it knows. Without own it asks once.
func gather(ctx context.Context, s *buyers.Shop, own []string) (Cluster, error) {
	slices.Sort(own)
	for end := time.Now().Add(gathering); ; {
		c, urls, err := members(ctx, s)
		if err != nil {
			return c, err
		}
		slices.Sort(urls)
		if len(own) == 0 || slices.Equal(urls, own) && slices.Contains(c.Members, c.Leader) || time.Now().After(end) {
			return c, nil
		}
		if !backoff.Sleep(ctx, lookEvery) {
			return c, context.Cause(ctx)
		}
	}
}

// members asks once, and returns the base URLs of the members too.
func members(ctx context.Context, s *buyers.Shop) (c Cluster, urls []string, err error) {
	status, _, answer, err := s.Send(ctx, http.MethodGet, s.URLs()[0]+"/api/v1/cluster", nil)
	if err != nil {
		return c, nil, err
	}
	var known struct {
		Members []struct{ Name, Address string }
		Leader  *struct {
			Name string
			Term uint64
		}
	}
	if err := json.Unmarshal(answer, &known); err != nil || status != http.StatusOK {
		return c, nil, fmt.Errorf("ask for the members: status %d: %s", status, bytes.TrimSpace(answer))
	}
	for _, m := range known.Members {
		c.Members = append(c.Members, m.Name)
		urls = append(urls, "http://"+m.Address)
	}
	if known.Leader != nil {
		c.Leader, c.Term = known.Leader.Name, known.Leader.Term
	}
	return c, urls, nil
}
