package blackbox_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

const (
	role        = "answers"
	vacantAfter = 3 * time.Second
)

// term is a term that continues until it is lost.
type term struct {
	fence dlock.Fence
	lost  atomic.Bool
}

func newTerm(token uint64, owner string) *term {
	return &term{fence: dlock.Fence{Token: token, Owner: owner}}
}

func (t *term) Fence() dlock.Fence { return t.fence }

func (t *term) Err() error {
	if t.lost.Load() {
		return &dlock.LostError{Key: "leader", Fence: t.fence, Reason: dlock.Expired}
	}
	return nil
}

// takes returns the leader token of a term.
func takes(t *testing.T, s *sqlstore.Store, tm *term) sqlstore.LeaderToken {
	t.Helper()
	token, err := s.ClaimRole(t.Context(), role, tm)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// recorded returns the term that the database has.
func recorded(t *testing.T, db *sql.DB) (number int64, owner string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT term, owner FROM terms WHERE duty = ?", role).Scan(&number, &owner); err != nil {
		t.Fatal(err)
	}
	return number, owner
}

// The work of a leader is refused, and changes nothing, from the moment at which a later leader claims the role. A
// leader that has lost its term claims no role.
func TestDeposedLeaderIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s, other := t.Context(), open(t, url, "one"), open(t, url, "two")
		sold := &stock.ShortageError{}
		first, second := newTerm(5, "a"), newTerm(9, "b")
		token := takes(t, s, first)
		work := func(o sqlstore.LeaderToken) (int64, error) {
			once := keyed("POST /orders", fmt.Sprint(time.Now().UnixNano()), "")
			if err := s.Refuse(ctx, once, refusal(sold)); err != nil {
				t.Fatal(err)
			}
			n, err := s.PurgeAnswers(ctx, o, -time.Hour, 100)
			if _, found, asking := s.Answer(ctx, once); asking != nil || found == (err == nil) {
				t.Errorf("the answer is there: %v, %v, after %v", found, asking, err)
			}
			return n, err
		}
		if n, err := work(token); n != 1 || err != nil {
			t.Errorf("in the first term: %d, %v", n, err)
		}
		later := takes(t, other, second)
		n, err := work(token)
		superseded, ok := errors.AsType[*sqlstore.SupersededError](err)
		if n != 0 || !ok || !errors.Is(err, dlock.ErrFenced) || superseded.Refused != first.fence || superseded.Accepted != second.fence || superseded.Role != role {
			t.Errorf("of a former leader: %d, %v", n, err)
		}
		if err := token.Check(ctx, nil); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("asked by a former leader: %v", err)
		}
		first.lost.Store(true)
		if _, err := s.ClaimRole(ctx, role, first); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("taken by a former leader: %v", err)
		}
		if n, err := work(later); n != 2 || err != nil {
			t.Errorf("in the second term: %d, %v", n, err)
		}
		if err := takes(t, other, second).Check(ctx, nil); err != nil {
			t.Errorf("taken again in the same term: %v", err)
		}
	})
}

// A service that counts terms and has lost its data begins again, as another one does that
// takes its place. The terms in the database go on.
func TestTermsThatBeginAgain(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, db := open(t, url, "one"), rawDB(t, url)
		last := takes(t, s, newTerm(1000, "old"))
		for _, c := range []struct {
			token uint64
			owner string
			want  int64
		}{
			{1000, "another", 1001},                  // the number of the last one, by chance
			{1, "empty", 1002},                       // counted from the start
			{2, "empty, second", 1003},               // and on
			{2, "empty, second", 1003},               // reported twice
			{50, "empty, third", 1051},               // with a gap
			{1 << 40, "other service", 1<<40 + 1001}, // whose numbers are high
			{7, "first service", 1<<40 + 1002},
		} {
			token := takes(t, s, newTerm(c.token, c.owner))
			if number, owner := recorded(t, db); number != c.want || owner != c.owner {
				t.Errorf("term %d of %s is recorded as %d of %s, want %d", c.token, c.owner, number, owner, c.want)
			}
			if err := token.Check(t.Context(), nil); err != nil {
				t.Errorf("term %d of %s: %v", c.token, c.owner, err)
			}
			if err := last.Check(t.Context(), nil); c.owner != "empty, second" && !errors.Is(err, dlock.ErrFenced) {
				t.Errorf("the leader before %s: %v", c.owner, err)
			}
			last = token
		}
	})
}

// The reply to the COMMIT that claims a role is lost, and the leader has it.
func TestLostReplyToClaimRole(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	takes(t, s, newTerm(3, "a"))
	proxy.DropReply("COMMIT")
	token := takes(t, s, newTerm(1, "b"))
	if proxy.Dropped() == 0 {
		t.Error("no reply was lost")
	}
	if err := token.Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
