package etcdlock

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// store is what a [Locker] does with etcd.
type store struct {
	cfg      Config
	keys     keys
	kv       pb.KVClient
	leases   pb.LeaseClient
	notifier *notifier
	renewer  *driver.Renewer
	rollback *driver.Rollback
	pool     *pool
}

func newStore(cli *clientv3.Client, cfg Config) *store {
	// Not the services of cli: they repeat a grant whose answer was lost, and so leave leases behind.
	conn := cli.ActiveConnection()
	s := &store{
		cfg: cfg, keys: keys{cfg.Prefix},
		kv: pb.NewKVClient(conn), leases: pb.NewLeaseClient(conn),
		notifier: newNotifier(cli.Ctx(), pb.NewWatchClient(conn)),
	}
	s.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: s.renew})
	s.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: cfg.TTL, Pause: cfg.Timeout / 4, Timeout: cfg.Timeout, Revert: s.revert,
	})
	s.pool = &pool{fresh: cfg.TTL / 3, drop: func(t tenure) {
		s.rollback.Add(cli.Ctx(), dlock.Held{Fence: dlock.Fence{Owner: ownerOf(t)}})
	}}
	return s
}

// close ends all leases and the watches, and waits for what is released.
func (s *store) close(ctx context.Context) error {
	s.renewer.Shut()
	s.pool.close()
	return errors.Join(s.notifier.close(ctx), s.rollback.Close(ctx))
}

// fallbackPoll is the longest pause of a waiter between two polls.
func (s *store) fallbackPoll() time.Duration { return min(time.Second, s.cfg.TTL/4) }

// request runs one call with the time that it may take.
func request[Q, A any](ctx context.Context, limit time.Duration, call func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var p peer.Peer
	sent := time.Now()
	answer, err := call(bounded, q, grpc.Peer(&p))
	judge(&p, sent, err)
	if err != nil {
		return answer, inTime(ctx, err)
	}
	return answer, nil
}

// txn runs one transaction.
func (s *store) txn(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
	return request(ctx, s.cfg.Timeout, s.kv.Txn, t)
}

// read runs one range request.
func (s *store) read(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return request(ctx, s.cfg.Timeout, s.kv.Range, r)
}

// grant asks for the lease id. The id is the client's choice, so that a lease whose
// grant was not answered can be revoked all the same.
func (s *store) grant(ctx context.Context, id int64) error {
	_, err := request(ctx, s.cfg.Timeout, s.leases.LeaseGrant, &pb.LeaseGrantRequest{ID: id, TTL: int64(s.cfg.TTL / time.Second)})
	return err
}

// revoke ends the lease id, and with it all that was written under it. It returns the
// revision of etcd after that, or 0 if there was no such lease.
func (s *store) revoke(ctx context.Context, id int64) (revision int64, err error) {
	answer, err := request(ctx, s.cfg.Timeout, s.leases.LeaseRevoke, &pb.LeaseRevokeRequest{ID: id})
	if isGone(err) {
		return 0, nil
	}
	return answer.GetHeader().GetRevision(), err
}
