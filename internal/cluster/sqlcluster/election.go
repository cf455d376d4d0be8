package sqlcluster

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// Election implements [cluster.Election] by one row: who leads, in which term, and until when. Its candidates poll.
type Election struct {
	c         *Cluster
	key, name string
}

var _ cluster.Election = (*Election)(nil)

// Election returns the instance of that name as a candidate in the election of that key, of at most 128 bytes.
func (c *Cluster) Election(key, name string) (*Election, error) {
	err := cluster.Member{Name: name}.Validate()
	if key == "" || len(key) > 128 {
		err = errors.Join(err, fmt.Errorf("key %.20q is empty or too long", key))
	}
	if err != nil {
		return nil, fmt.Errorf("sqlcluster: election: %w", err)
	}
	return &Election{c, key, name}, nil
}

// Campaign implements [cluster.Election]. Which of the candidates is elected is random. OnError receives the first of
// several failures in a row.
func (e *Election) Campaign(ctx context.Context) (*cluster.Term, error) {
	failing := false
	for mine := rand.Text(); ; {
		term, err := e.take(ctx, mine)
		if term != nil {
			return term, nil
		}
		if err != nil && !failing && ctx.Err() == nil {
			e.c.cfg.OnError(fmt.Errorf("sqlcluster: campaign for %q: %w", e.key, err))
		}
		failing = err != nil
		if !backoff.Sleep(ctx, e.c.cfg.Poll/2+mathrand.N(e.c.cfg.Poll/2)) {
			return nil, fmt.Errorf("sqlcluster: campaign for %q: %w", e.key, errors.Join(dlock.Ended(ctx), err))
		}
	}
}

// take begins a term if the row is free, or if an attempt of mine without an answer has taken it. It replaces the row
// that it has read and no other one, so one candidate succeeds, and an attempt that arrives late replaces no later term.
func (e *Election) take(ctx context.Context, mine string) (*cluster.Term, error) {
	now, last, stored, live, err := e.row(ctx)
	if err != nil || live && last.Fence.Owner != mine {
		return nil, err
	}
	next := last
	if !live {
		// Not only the next number: the row may have been deleted, or restored from a copy.
		next = cluster.Leader{Name: e.name, Fence: dlock.Fence{Token: max(last.Fence.Token+1, now), Owner: mine}, Since: time.Now()}
		next.Since = next.Since.Truncate(time.Millisecond)
	}
	ctx, sent := context.WithoutCancel(ctx), time.Now() // an attempt that is cut off might take the row without a leader
	args := []any{token(next), cluster.EncodeLeader(next), e.c.cfg.Group, e.key}
	statement := e.c.insert("cluster_leaders (token, entry, group_name, name, expires_at) VALUES (?, ?, ?, ?, " + e.c.until() + ")")
	if stored != "" {
		statement = "UPDATE cluster_leaders SET token = ?, entry = ?, expires_at = " + e.c.until() +
			" WHERE group_name = ? AND name = ? AND token = ? AND (NOT (" + e.c.live(e.c.now) + ") OR entry = ?)"
		args = append(args, stored, args[1])
	}
	if n, err := e.c.exec(ctx, statement, args...); err != nil || n == 0 {
		return nil, err
	}
	return e.begin(ctx, next, sent), nil
}

// row reads the time, the last leader, its token as the row has it, and whether its term continues, all by the clock of the
// database. Without a row the token is empty. A token that is no number counts as 0.
func (e *Election) row(ctx context.Context) (now uint64, l cluster.Leader, stored string, live bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.c.cfg.Timeout)
	defer cancel()
	var entry string
	err = e.c.db.QueryRowContext(ctx, "SELECT t.clock, COALESCE(token, ''), COALESCE(entry, ''), CASE WHEN "+e.c.live("t.clock")+" THEN 1 ELSE 0 END"+
		" FROM (SELECT "+e.c.now+" AS clock) AS t LEFT JOIN cluster_leaders ON group_name = ? AND name = ?", e.c.cfg.Group, e.key).
		Scan(&now, &stored, &entry, &live)
	if err != nil || stored == "" {
		return now, l, stored, live, err
	}
	l, err = cluster.DecodeLeader(entry)
	number, illegible := strconv.ParseUint(stored, 10, 64)
	if err = errors.Join(err, illegible); err != nil {
		e.c.strays.Report(e.c.cfg.OnError, "sqlcluster: leader", e.key+": "+stored+" "+entry, err)
		l = cluster.Leader{}
	}
	l.Fence.Token = number
	return now, l, stored, live, nil
}

// token returns the number of a term as a text that compares as the number does.
func token(l cluster.Leader) string { return fmt.Sprintf("%020d", l.Fence.Token) }

// begin starts the goroutine that renews the row. It ends with the term; Resign waits for it.
func (e *Election) begin(ctx context.Context, l cluster.Leader, sent time.Time) *cluster.Term {
	held, end := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		e.renew(held, end, l, sent)
	}()
	return cluster.NewTerm(held, l, func(ctx context.Context) error {
		end(dlock.ErrReleased)
		<-renewed
		if !errors.Is(context.Cause(held), dlock.ErrReleased) {
			return nil // it was lost
		}
		return e.c.insist(ctx, "UPDATE cluster_leaders SET expires_at = 0 WHERE group_name = ? AND name = ? AND token = ? AND entry = ?",
			e.c.cfg.Group, e.key, token(l), cluster.EncodeLeader(l))
	})
}

// renew renews the row every TTL/3, more often after a failure, until held ends. It ends held when the row has another
// term or has expired. It ends held a tenth of a TTL before the row can expire, by the monotonic clock of the process.
func (e *Election) renew(held context.Context, end context.CancelCauseFunc, l cluster.Leader, sent time.Time) {
	lost := func(why dlock.Reason) { end(&dlock.LostError{Key: e.key, Fence: l.Fence, Reason: why}) }
	valid := e.c.cfg.TTL * 9 / 10
	expiry := time.AfterFunc(time.Until(sent.Add(valid)), func() { lost(dlock.Expired) })
	defer expiry.Stop()
	for wait := e.c.cfg.TTL / 3; backoff.Sleep(held, wait); {
		ctx, cancel := context.WithTimeout(held, e.c.cfg.Timeout)
		sent := time.Now()
		err := e.touch(ctx, e.c.db, l, e.c.until())
		cancel()
		switch {
		case errors.Is(err, dlock.ErrFenced):
			lost(dlock.Taken)
		case err == nil:
			expiry.Reset(time.Until(sent.Add(valid)))
			wait = e.c.cfg.TTL / 3
		case held.Err() == nil:
			e.c.cfg.OnError(fmt.Errorf("sqlcluster: renewal of the leader of %q: %w", e.key, err))
			wait = e.c.cfg.TTL / 20
		}
	}
}

// Tx is a transaction of the application on the same database, or the database itself.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Hold is the first statement of each transaction in which the leader l works. It locks the row until the transaction
// ends, so no other term begins meanwhile. If the row has another term, or the term has expired or ended, the error
// matches [dlock.ErrFenced], and the transaction must be rolled back. Hold renews nothing: it changes the row by a
// microsecond, because some drivers do not count rows that stay the same.
func (e *Election) Hold(ctx context.Context, tx Tx, l cluster.Leader) error {
	return e.touch(ctx, tx, l, "expires_at + 1")
}

func (e *Election) touch(ctx context.Context, tx Tx, l cluster.Leader, until string) error {
	r, err := tx.ExecContext(ctx, "UPDATE cluster_leaders SET expires_at = "+until+
		" WHERE group_name = ? AND name = ? AND token = ? AND entry = ? AND expires_at > "+e.c.now,
		e.c.cfg.Group, e.key, token(l), cluster.EncodeLeader(l))
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		err = fmt.Errorf("sqlcluster: term %d of %q is over: %w", l.Fence.Token, e.key, dlock.ErrFenced)
	}
	return err
}

// Observe implements [cluster.Election]. A reading is one SELECT by the primary key.
func (e *Election) Observe(ctx context.Context) iter.Seq2[cluster.Leader, error] {
	return watch(ctx, e.c, cluster.Leader.Equal, func(ctx context.Context) (cluster.Leader, error) {
		_, l, _, live, err := e.row(ctx)
		if !live {
			l = cluster.Leader{}
		}
		return l, err
	})
}
