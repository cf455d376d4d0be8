package httpapi

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/cluster"
)

// Cluster has the members and the settings that all instances share.
type Cluster interface {
	// Members returns the live instances and the leader, as this instance last read them. A non-nil
	// error is the reason why they may be stale.
	Members() ([]cluster.Member, cluster.Leader, error)

	// Settings returns the configuration.
	Settings() []cluster.State

	// Set writes a setting; see [cluster.Settings.Set].
	Set(ctx context.Context, name, value string, version int64) (int64, error)
}

// ShowCluster implements [StrictServerInterface].
func (a *api) ShowCluster(context.Context, ShowClusterRequestObject) (ShowClusterResponseObject, error) {
	body := ClusterState{Members: []Member{}, Config: []Setting{}, Load: a.load()}
	if a.Cluster == nil {
		return ShowCluster200JSONResponse(body), nil
	}
	members, leader, err := a.Cluster.Members()
	if err != nil {
		body.Stale = err.Error()
	}
	for _, m := range members {
		body.Members = append(body.Members, Member{
			Name: m.Name, Address: m.Address, Role: m.Role, Version: m.Version, StartedAt: m.Started.UTC(), Leads: m.Name == leader.Name,
		})
	}
	if leader.Elected() {
		body.Leader = &Leader{Name: leader.Name, Term: int64(leader.Fence.Token), Since: leader.Since.UTC()}
	}
	for _, s := range a.Cluster.Settings() {
		setting := Setting{Name: s.Name, Value: s.Value, Version: s.Stored}
		if s.Refused != nil {
			setting.Refused = s.Refused.Error()
		}
		body.Config = append(body.Config, setting)
	}
	return ShowCluster200JSONResponse(body), nil
}

// load returns the load of this instance.
func (a *api) load() Load {
	l := Load{Instance: a.Instance}
	if a.Permits != nil {
		s := a.Permits()
		l.Permits, l.InUse, l.Degraded = int64(s.Permits), int64(s.InUse), s.Degraded
	}
	if a.Waiting != nil {
		l.Waiting = int64(a.Waiting())
	}
	return l
}

// SetConfig implements [StrictServerInterface].
func (a *api) SetConfig(ctx context.Context, r SetConfigRequestObject) (SetConfigResponseObject, error) {
	if a.Cluster == nil {
		return nil, fmt.Errorf("%w: the instance has none", cluster.ErrUnknownKey)
	}
	ctx, _ = requestOf(ctx)
	if r.Body.Version != nil {
		return a.setConfig(ctx, r, *r.Body.Version)
	}
	// Without a version, replace the current one; after a concurrent write, retry.
	for version := int64(0); ; {
		for _, s := range a.Cluster.Settings() {
			if s.Name == r.Name {
				version = max(version, s.Stored)
			}
		}
		done, err := a.setConfig(ctx, r, version)
		conflict, ok := errors.AsType[*cluster.ConflictError](err)
		if !ok || conflict.Current.Version <= version || ctx.Err() != nil {
			return done, err
		}
		version = conflict.Current.Version
	}
}

func (a *api) setConfig(ctx context.Context, r SetConfigRequestObject, version int64) (SetConfigResponseObject, error) {
	written, err := a.Cluster.Set(ctx, r.Name, r.Body.Value, version)
	if err != nil {
		return nil, err
	}
	return SetConfig200JSONResponse(Setting{Name: r.Name, Value: r.Body.Value, Version: written}), nil
}
