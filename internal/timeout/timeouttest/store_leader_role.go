package timeouttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// leaderTokenIsChecked has leader tokens that write in the given transaction. Their writes are stored if and only if
// the changes of the method are.
func leaderTokenIsChecked(ctx context.Context, t *testing.T, c StoreClient) {
	now := c.now(ctx, t)
	refused := errors.New("refused")
	insert := func(id string, err error) timeout.LeaderToken {
		return func(ctx context.Context, tx timeout.Tx) error {
			if tx == nil {
				return errors.New("a leader token without a transaction")
			}
			timers := []timeout.Timer{{Kind: kind, ID: id, Due: now.Add(time.Hour)}}
			return errors.Join(c.Insert(ctx, tx, timeout.Base, "", timers), err)
		}
	}
	c.insert(ctx, t, now.Add(-time.Minute), "overdue")
	c.insertIn(ctx, t, "gone", timeout.Timer{Kind: kind, ID: "orphan", Due: now.Add(time.Hour)})
	before := c.load(ctx, t, "overdue", "orphan")

	claimed, err := c.ClaimOverdue(ctx, insert("overdue scan", refused), kind, timeout.Base, now, now.Add(time.Minute), 10)
	if !errors.Is(err, refused) || len(claimed) != 0 {
		t.Errorf("claimed %v, %v", claimed, err)
	}
	if n, err := c.Reassign(ctx, insert("reassign", refused), time.Minute, 10); !errors.Is(err, refused) || n != 0 {
		t.Errorf("reassigned %d, %v", n, err)
	}
	same(t, "after a refusal", c.load(ctx, t, "overdue", "orphan", "overdue scan", "reassign"), before)

	claimed, err = c.ClaimOverdue(ctx, insert("overdue scan", nil), kind, timeout.Base, now, now.Add(time.Minute), 10)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "claimed", idsOf(claimed), []string{"overdue"})
	if n, err := c.Reassign(ctx, insert("reassign", nil), time.Minute, 10); err != nil || n != 1 {
		t.Errorf("reassigned %d, %v", n, err)
	}
	if n := len(c.load(ctx, t, "overdue scan", "reassign")); n != 2 {
		t.Errorf("%d of 2 leader tokens have written", n)
	}
}
