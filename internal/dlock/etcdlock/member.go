package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// askTimeout is how long [Ask] waits for a member.
const askTimeout = time.Second

// Member is a member of a cluster as it describes itself.
type Member struct {
	Version, Role string   // leader, follower, learner, or no leader
	Alarms        []string // NOSPACE and others
}

// Ask asks the member at address for its state. It waits at most a second.
func Ask(ctx context.Context, client *clientv3.Client, address string) (Member, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := client.Status(ctx, address)
	if err != nil {
		return Member{}, err
	}
	m := Member{Version: status.Version, Role: "follower", Alarms: status.Errors}
	switch {
	case status.IsLearner:
		m.Role = "learner"
	case status.Leader == 0:
		m.Role = "no leader"
	case status.Leader == status.Header.MemberId:
		m.Role = "leader"
	}
	return m, nil
}
