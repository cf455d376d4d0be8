package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/cluster"
)

// Members implements [cluster.Membership]. A look is one request, whose answer names
// the members only if they have changed.
func (c *Cluster) Members(ctx context.Context) iter.Seq2[cluster.View, error] {
	return func(yield func(cluster.View, error) bool) {
		w := &watcher{c: c, epoch: "-"}
		watch(ctx, c, cluster.View.Equal, w.look)(yield)
	}
}

// watcher is one sequence of members.
type watcher struct {
	c               *Cluster
	epoch, revision string // "-" before the first look
	view            cluster.View
	looked          time.Time // when the list was right last
	until           time.Time // until when members may be missing that live; zero if none is
}

var errIncomplete = errors.New("after an outage of redis not all members are back")

// look returns the members. A server that has lost its data, or was unavailable for so long that leases expired, lists
// members only when they have joined again. So for two thirds of a TTL, a list that lacks previous members is not used.
// An outage of half a TTL does no harm: leases are renewed when two thirds of them are left.
func (w *watcher) look(ctx context.Context) (cluster.View, error) {
	reply, err := w.c.run(ctx, listScript, w.c.memberKeys(), w.c.cfg.TTL.Milliseconds(), w.epoch, w.revision).Slice()
	if err != nil {
		return cluster.View{}, err
	}
	epoch, revision := fmt.Sprint(reply[0]), fmt.Sprint(reply[1])
	now := time.Now()
	if (epoch != w.epoch || now.Sub(w.looked) > w.c.cfg.TTL/2) && w.until.IsZero() {
		w.until = now.Add(w.c.cfg.TTL * 2 / 3)
	}
	next := w.view
	if reply[2] == int64(1) {
		next = w.c.parse(reply[3:])
	}
	w.epoch = epoch
	if now.Before(w.until) && !includes(next, w.view) {
		w.revision = "" // ask for the whole list again
		return cluster.View{}, errIncomplete
	}
	w.view, w.revision, w.looked, w.until = next, revision, now, time.Time{}
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
func (c *Cluster) parse(pairs []any) cluster.View {
	var members []cluster.Member
	ignored := 0
	for pair := range slices.Chunk(pairs, 2) {
		name, held := fmt.Sprint(pair[0]), fmt.Sprint(pair[1])
		_, text, _ := strings.Cut(held, ";")
		m, err := cluster.DecodeMember(text)
		if err == nil && m.Name != name {
			err = fmt.Errorf("%w: it names %q", cluster.ErrStray, m.Name)
		}
		if err != nil {
			ignored++
			c.strays.Report(c.cfg.OnError, "rediscluster:", name+": "+held, err)
			continue
		}
		members = append(members, m)
	}
	return cluster.NewView(members, ignored)
}
