package etcdlock

import (
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// The requests of this package, a function each. Reads are linearizable, but for one.

// entering is the transaction that takes a place: it reads the last keys before own, and writes own, at the same
// revision.
func entering(ahead, own string, id int64) *pb.TxnRequest {
	return &pb.TxnRequest{Success: []*pb.RequestOp{ranging(latest(ahead, 0)), putting(own, id)}}
}

// ifFree is the transaction that takes a place only if nobody is ahead.
func ifFree(ahead, own string, id int64) *pb.TxnRequest {
	nobody := compare(ahead, pb.Compare_EQUAL, 0)
	nobody.RangeEnd = end(ahead) // holds if it does for all keys, as for none
	return &pb.TxnRequest{Compare: []*pb.Compare{nobody}, Success: []*pb.RequestOp{putting(own, id)}}
}

// whoIsLeft is the transaction of a poll: whether own is still there, and if next is gone, who of those before
// revision is left.
//
// If local is set, a member may answer from memory, without waiting for the disk. The answer may be old, but keys
// before revision can only disappear. So any queue in which own exists and is first proves that it is the turn of
// own.
func whoIsLeft(ahead, own, next string, revision int64, local bool) *pb.TxnRequest {
	self, others := exactly(own), latest(ahead, revision-1)
	self.Serializable, others.Serializable = local, local
	return &pb.TxnRequest{
		Compare: []*pb.Compare{compare(next, pb.Compare_GREATER, 0)}, // it is there
		Success: []*pb.RequestOp{ranging(self)},
		Failure: []*pb.RequestOp{ranging(self), ranging(others)},
	}
}

// latest reads the last two keys that begin with prefix, the later one first. If upTo is not 0, keys created after
// that revision do not count.
func latest(prefix string, upTo int64) *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: []byte(prefix), RangeEnd: end(prefix), KeysOnly: true, Limit: 2, MaxCreateRevision: upTo,
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_DESCEND,
	}
}

// earliest reads all that begin with prefix, in the order in which they came.
func earliest(prefix string) *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: []byte(prefix), RangeEnd: end(prefix),
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND,
	}
}

// anyOf reads whether anything begins with prefix.
func anyOf(prefix string) *pb.RangeRequest {
	return &pb.RangeRequest{Key: []byte(prefix), RangeEnd: end(prefix), KeysOnly: true, Limit: 1}
}

// exactly reads one key.
func exactly(key string) *pb.RangeRequest {
	return &pb.RangeRequest{Key: []byte(key), KeysOnly: true}
}

func ranging(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

// putting writes own, which goes with lease id. Its value is when that was, for
// people: etcd has no clock that could be asked.
func putting(own string, id int64) *pb.RequestOp {
	now := strconv.FormatInt(time.Now().UnixMicro(), 10)
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{
		Key: []byte(own), Value: []byte(now), Lease: id,
	}}}
}

// leaving is the transaction that leaves the queue: it deletes own if that was created at revision.
func leaving(own string, revision int64) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: []*pb.Compare{created(own, revision)}, Success: []*pb.RequestOp{deleting(own)}}
}

// forcing is the transaction that deletes own if it was created at revision. It leaves a notification for the owner
// until the owner's lease ends. A key without a lease has no owner that could be notified.
func forcing(own, word string, revision, id int64) *pb.TxnRequest {
	if id == 0 {
		return leaving(own, revision)
	}
	return &pb.TxnRequest{Compare: []*pb.Compare{created(own, revision)}, Success: []*pb.RequestOp{
		putting(word, id), deleting(own),
	}}
}

// created holds if own is there, and was created at revision.
func created(own string, revision int64) *pb.Compare { return compare(own, pb.Compare_EQUAL, revision) }

// compare compares the revision at which key was created, 0 if it is not there.
func compare(key string, result pb.Compare_CompareResult, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: []byte(key), Target: pb.Compare_CREATE, Result: result,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision},
	}
}

func deleting(own string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(own)}}}
}

// names returns the keys that a range found.
func names(op *pb.ResponseOp) []string {
	found := op.GetResponseRange().GetKvs()
	all := make([]string, len(found))
	for i, kv := range found {
		all[i] = string(kv.Key)
	}
	return all
}
