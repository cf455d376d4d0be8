package etcdlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusals are the codes of answers that prove that nothing was written. Others, as Unavailable, do not: a member that
// lost its leader may have passed the request on before.
var refusals = []codes.Code{
	codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.ResourceExhausted,
	codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated,
}

// refused reports whether err is an answer that proves that nothing was written.
func refused(err error) bool {
	answer, ok := status.FromError(err)
	return ok && slices.Contains(refusals, answer.Code())
}

// isGone reports whether err says that there is no such lease.
func isGone(err error) bool { return errors.Is(err, rpctypes.ErrGRPCLeaseNotFound) }

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
