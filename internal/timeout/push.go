package timeout

import "context"

const putChunk = 1000 // entries in one call of the index

// shardKey names all shards of a kind and partition.
type shardKey struct{ kind, partition string }

// pushed is an entry on its way to the index.
type pushed struct {
	shardKey
	Entry
}

// push sends entries to the index in the background. A caller never waits: entries that do not fit are dropped, and the
// next pass or the overdue scan finds their timers. A timer that is due after the window is left to the passes.
func (q *Queue) push(entries []pushed) {
	for _, e := range entries {
		if !q.hasConsumer(e.shardKey) {
			continue
		}
		select {
		case q.pushes <- e:
		default:
			q.observer.EntriesDropped(e.kind, 1)
		}
	}
}

// runPushes sends entries until ctx ends, and then those that wait. Entries that arrive during a call share the next one.
func (q *Queue) runPushes(ctx context.Context) {
	for {
		select {
		case e := <-q.pushes:
			q.send(context.WithoutCancel(ctx), e)
		case <-ctx.Done():
			for len(q.pushes) > 0 {
				q.send(context.WithoutCancel(ctx), <-q.pushes)
			}
			return
		}
	}
}

// send sends e, and those that wait behind it.
func (q *Queue) send(ctx context.Context, e pushed) {
	all := map[shardKey][]Entry{e.shardKey: {e.Entry}}
	for range min(len(q.pushes), putChunk-1) {
		e := <-q.pushes
		all[e.shardKey] = append(all[e.shardKey], e.Entry)
	}
	for key, entries := range all {
		if err := q.put(ctx, key.kind, key.partition, entries); err != nil {
			q.observer.EntriesDropped(key.kind, len(entries))
			q.observer.Failed(key.kind, "put entries", err)
		}
	}
}
