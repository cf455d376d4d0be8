package sqlcluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/shop/internal/cluster"
)

// Members implements [cluster.Membership]. A reading is one SELECT by the primary key.
func (c *Cluster) Members(ctx context.Context) iter.Seq2[cluster.View, error] {
	return func(yield func(cluster.View, error) bool) {
		w := &watcher{c: c}
		watch(ctx, c, cluster.View.Equal, w.read)(yield)
	}
}

// watcher is one sequence of members.
type watcher struct {
	c      *Cluster
	view   cluster.View
	right  time.Time // when the list was right last
	paused time.Time // until when members may be missing that live; zero if none is
}

var errIncomplete = errors.New("after an outage of the database not all members are back")

// read returns the members. After an outage in which rows have expired, live members are listed only when they have
// joined again. So for two thirds of a TTL, a list that lacks previous members is not used. An outage of half a TTL
// does no harm: a row is renewed when two thirds of its TTL are left.
func (w *watcher) read(ctx context.Context) (cluster.View, error) {
	pairs, err := w.c.rows(ctx, "SELECT name, entry FROM cluster_members WHERE group_name = ? AND "+w.c.live(w.c.now), w.c.cfg.Group)
	if err != nil {
		return cluster.View{}, err
	}
	now, next := time.Now(), w.c.parse(pairs)
	if now.Sub(w.right) > w.c.cfg.TTL/2 && w.paused.IsZero() {
		w.paused = now.Add(w.c.cfg.TTL * 2 / 3)
	}
	if now.Before(w.paused) && !includes(next, w.view) {
		return cluster.View{}, errIncomplete
	}
	w.view, w.right, w.paused = next, now, time.Time{}
	return next, nil
}

// includes reports whether v has all members of old, by their names.
func includes(v, old cluster.View) bool {
	for _, m := range old.Members {
		if !slices.ContainsFunc(v.Members, func(other cluster.Member) bool { return other.Name == m.Name }) {
			return false
		}
	}
	return true
}

// parse reads pairs of a name and an entry.
func (c *Cluster) parse(pairs [][2]string) cluster.View {
	var members []cluster.Member
	ignored := 0
	for _, pair := range pairs {
		m, err := cluster.DecodeMember(pair[1])
		if err == nil && m.Name != pair[0] {
			err = fmt.Errorf("%w: it names %q", cluster.ErrStray, m.Name)
		}
		if err != nil {
			ignored++
			c.strays.Report(c.cfg.OnError, "sqlcluster: member", pair[0]+": "+pair[1], err)
			continue
		}
		members = append(members, m)
	}
	return cluster.NewView(members, ignored)
}
