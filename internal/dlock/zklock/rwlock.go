package zklock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/dlock/driver/rwsides"
	"example.com/shop/internal/platform/zookeeper"
)

// RW is [dlock.RWLocker] on ZooKeeper. Readers and writers share one queue, first come, first served. A writer waits
// for the last node before it, a reader for the last writer before it. So it is not phase-fair, and still nobody
// starves.
//
// # Data
//
//	PREFIX/KEY                      container  TOKEN OWNER of the last writer; empty before the first one
//	PREFIX/KEY/queue                container
//	PREFIX/KEY/queue/ID-write-NNN   ephemeral, sequential
//	PREFIX/KEY/queue/ID-read-NNN    the same
//
// A writer that is granted the key writes its fencing token down, on the condition that its node exists, in one step.
// Readers read it. The token is twice the number of the transaction that created the writer's node, so there is a
// free token between any two. A force-release of a writer leaves that token behind, for the next readers. Readers of
// a key that no writer has had get a fencing token made of the number of the transaction that created KEY. A writer
// whose session has ended leaves its token to the readers that follow: until the next writer, a resource does not refuse
// what it writes late.
//
// # Operations
//
// In round trips, and c for a commit of the servers: AcquireRead 3+c, Acquire 3+2c, TryAcquireRead 3+c, TryAcquire
// 3+2c, Release 1+c. A hand-off from a writer takes 1 in the same process (the fencing token), and 2+c to another
// process.
type RW struct {
	queue *queue
	sides rwsides.Sides
}

var (
	_ dlock.RWLocker      = (*RW)(nil)
	_ dlock.Inspector     = (*RW)(nil)
	_ dlock.ForceReleaser = (*RW)(nil)
)

// NewRW returns an RW on s, which it does not close. The end of s ends all leases, as that of a
// [Locker].
func NewRW(s *zookeeper.Session, cfg Config) (*RW, error) {
	if err := cfg.validate("/rwlocks"); err != nil {
		return nil, err
	}
	l := &RW{queue: newQueue(s, cfg)}
	l.queue.admit = l.admit
	return l, nil
}

// Acquire implements [dlock.Locker]: it takes key as a writer.
func (l *RW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, kindWrite, l.queue.acquire)
}

// TryAcquire implements [dlock.Locker]: it takes key as a writer.
func (l *RW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, kindWrite, l.queue.try)
}

// AcquireRead implements [dlock.RWLocker].
func (l *RW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, kindRead, l.queue.acquire)
}

// TryAcquireRead implements [dlock.RWLocker].
func (l *RW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, kindRead, l.queue.try)
}

func (l *RW) take(ctx context.Context, key string, k kind, how func(context.Context, claim) (*dlock.Lease, error)) (*dlock.Lease, error) {
	if lease, err := l.sides.Enter(ctx, key, k == kindWrite, driver.CheckKey); lease != nil || err != nil {
		return lease, err
	}
	c := l.claim(key)
	c.kind, c.backend = k, l.sides.Side(k == kindWrite)
	return how(ctx, c)
}

func (l *RW) claim(key string) claim { return claim{key: key, dir: l.record(key) + "/queue"} }

// record is the node that has the fencing token of the last writer.
func (l *RW) record(key string) string { return l.queue.cfg.Prefix + "/" + escape(key) }

// token is that of a node, by the transaction that created it.
func token(zxid uint64) uint64 { return 2 * zxid }

func text(f dlock.Fence) []byte { return fmt.Appendf(nil, "%d %s", f.Token, f.Owner) }

// admit is the work for a writer before its notification, and how a reader gets its fence.
func (l *RW) admit(ctx context.Context, c claim, n zookeeper.Node) (dlock.Fence, error) {
	if c.kind == kindRead {
		return l.last(ctx, c.key)
	}
	f := dlock.Fence{Token: token(n.Zxid), Owner: n.ID}
	err := l.queue.s.Multi(ctx, zookeeper.ExistsOp(n.Path), zookeeper.SetOp(l.record(c.key), text(f)))
	return f, err
}

// last returns the fencing token of the last writer.
func (l *RW) last(ctx context.Context, key string) (dlock.Fence, error) {
	data, stat, err := l.queue.s.Get(ctx, l.record(key))
	if err != nil {
		return dlock.Fence{}, err
	}
	return fenceOf(data, stat)
}

// fenceOf returns the fencing token on record.
func fenceOf(data []byte, stat *zk.Stat) (dlock.Fence, error) {
	if len(data) == 0 {
		return dlock.Fence{Token: token(uint64(stat.Czxid)), Owner: "nobody-" + strconv.FormatInt(stat.Czxid, 10)}, nil
	}
	first, owner, ok := strings.Cut(string(data), " ")
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil || !ok {
		return dlock.Fence{}, fmt.Errorf("zklock: %q is no fence", data)
	}
	return dlock.Fence{Token: n, Owner: owner}, nil
}

// Inspect implements [dlock.Inspector]. Of several readers it reports since when the
// first one reads.
func (l *RW) Inspect(ctx context.Context, key string) (dlock.State, error) {
	return l.queue.inspect(ctx, l.claim(key), func(p place, zxid uint64) (dlock.Fence, error) {
		if p.kind == kindRead {
			return l.last(ctx, key)
		}
		return dlock.Fence{Token: token(zxid), Owner: p.id}, nil
	})
}

// ForceRelease implements [dlock.ForceReleaser]: it ends the lease of the writer, or
// those of all readers that wait for nobody.
func (l *RW) ForceRelease(ctx context.Context, key string) error {
	return l.queue.force(ctx, l.claim(key), func(p place, path string) error {
		if p.kind == kindRead {
			return l.queue.s.Delete(ctx, path, -1)
		}
		for {
			if err := l.evict(ctx, key, path); !errors.Is(err, zk.ErrBadVersion) {
				return err
			}
		}
	})
}

// evict deletes the node of a writer, and leaves the next fencing token behind. It keeps a later token on record: the
// writer may have handed the key on within its process already. It returns zk.ErrBadVersion if another fencing token
// has been written meanwhile.
func (l *RW) evict(ctx context.Context, key, path string) error {
	s := l.queue.s
	_, node, err := s.Get(ctx, path)
	if err != nil {
		return err
	}
	data, record, err := s.Get(ctx, l.record(key))
	if err != nil {
		return err
	}
	last, err := fenceOf(data, record)
	if err != nil {
		return err
	}
	next := dlock.Fence{Token: token(uint64(node.Czxid)) + 1, Owner: rand.Text()}
	if last.Token > next.Token {
		return s.Delete(ctx, path, -1)
	}
	return s.Multi(ctx, zookeeper.DeleteOp(path),
		zookeeper.VersionOp(l.record(key), record.Version), zookeeper.SetOp(l.record(key), text(next)))
}
