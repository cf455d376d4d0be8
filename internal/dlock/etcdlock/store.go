package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/shop/internal/dlock"
)

// store is what a [Locker] and an [RW] have in common.
type store struct {
	cfg     Config
	keys    keys
	kv      pb.KVClient
	leases  pb.LeaseClient
	hub     *hub
	renewer *dlock.Renewer
	undo    *dlock.Undo
	pool    *pool
}

func newStore(cli *clientv3.Client, cfg Config) *store {
	// The services are used as they are: those of the client repeat the grant of a
	// lease whose answer was lost, and so leave leases behind.
	conn := cli.ActiveConnection()
	s := &store{
		cfg: cfg, keys: keys{cfg.Prefix},
		kv: pb.NewKVClient(conn), leases: pb.NewLeaseClient(conn),
		hub: newHub(cli.Ctx(), pb.NewWatchClient(conn)),
	}
	s.renewer = dlock.NewRenewer(dlock.RenewerConfig{TTL: cfg.TTL, Renew: s.renew})
	s.undo = dlock.NewUndo(dlock.UndoConfig{
		TTL: cfg.TTL, Pause: cfg.Timeout / 4, Timeout: cfg.Timeout, GiveBack: s.giveBack,
	})
	s.pool = &pool{fresh: cfg.TTL / 3, drop: func(t tenure) {
		s.undo.Add(cli.Ctx(), dlock.Held{Fence: dlock.Fence{Owner: ownerOf(t)}})
	}}
	return s
}

// close ends all leases and the watches, and waits for what is given back.
func (s *store) close(ctx context.Context) error {
	s.renewer.Shut()
	s.pool.close()
	return errors.Join(s.hub.close(ctx), s.undo.Wait(ctx))
}

// recheck is the longest pause of a waiter between two looks.
func (s *store) recheck() time.Duration { return min(time.Second, s.cfg.TTL/4) }

// request runs one call with the time that it may take.
func request[Q, A any](ctx context.Context, limit time.Duration, call func(context.Context, Q) (A, error), q Q) (A, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := call(bounded, q)
	if err != nil {
		return answer, inTime(ctx, err)
	}
	return answer, nil
}

// txn runs one transaction.
func (s *store) txn(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
	return request(ctx, s.cfg.Timeout, func(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
		return s.kv.Txn(ctx, t)
	}, t)
}

// read runs one range request.
func (s *store) read(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return request(ctx, s.cfg.Timeout, func(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
		return s.kv.Range(ctx, r)
	}, r)
}

// grant asks for the lease id. The id is the client's choice, so that a lease whose
// grant was not answered can be revoked all the same.
func (s *store) grant(ctx context.Context, id int64) error {
	_, err := request(ctx, s.cfg.Timeout, func(ctx context.Context, q *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
		return s.leases.LeaseGrant(ctx, q)
	}, &pb.LeaseGrantRequest{ID: id, TTL: int64(s.cfg.TTL / time.Second)})
	return err
}

// revoke ends the lease id, and with it all that was written under it. It returns the
// revision of etcd after that, or 0 if there was no such lease.
func (s *store) revoke(ctx context.Context, id int64, limit time.Duration) (revision int64, err error) {
	answer, err := request(ctx, limit, func(ctx context.Context, q *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
		return s.leases.LeaseRevoke(ctx, q)
	}, &pb.LeaseRevokeRequest{ID: id})
	if isGone(err) {
		return 0, nil
	}
	return answer.GetHeader().GetRevision(), err
}

// isGone reports whether err says that there is no such lease.
func isGone(err error) bool { return errors.Is(err, rpctypes.ErrGRPCLeaseNotFound) }

// giveBack is for the Undo. What arrives after the lease has been revoked writes nothing.
func (s *store) giveBack(ctx context.Context, held []dlock.Held) ([]bool, error) {
	found, errs := make([]bool, len(held)), make([]error, len(held))
	each(len(held), func(i int) {
		id, err := leaseOf(held[i].Fence.Owner)
		if err == nil {
			var revision int64
			revision, err = s.revoke(ctx, id, s.cfg.Timeout)
			found[i] = revision > 0
		}
		errs[i] = err
	})
	return found, errors.Join(errs...)
}

// failed is the error of an attempt that err ended. What the attempt may have
// written goes with its lease, which is revoked in the background.
func (s *store) failed(ctx context.Context, p *place, err error) error {
	if p != nil {
		s.undo.Add(ctx, p.held())
	}
	known := refused(err)
	if ctx.Err() != nil { // its cause may look like an answer
		err = errors.Join(dlock.Ended(ctx), err)
	}
	if known {
		return err
	}
	return fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
}

// refused reports whether err is an answer that proves that nothing was written.
func refused(err error) bool {
	answer, ok := status.FromError(err)
	if !ok {
		return false
	}
	switch answer.Code() {
	case codes.InvalidArgument, codes.ResourceExhausted, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.NotFound, codes.OutOfRange, codes.Unimplemented:
		return true
	default: // Unavailable and the like: a member that lost its leader may have passed it on before
		return false
	}
}

// inTime adds the end of ctx to err, which the client reports in its own words, and
// sometimes before ctx itself is done. It leaves the cause of ctx out, which may look like
// an answer of etcd.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return errors.Join(context.DeadlineExceeded, err)
	}
	return err
}
