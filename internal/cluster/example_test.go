package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest/memcluster"
)

// Two instances see each other come, and one go.
func ExampleMembership() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	members := &memcluster.Cluster{} // or zkcluster.New, sqlcluster.New
	first, err := members.Join(ctx, cluster.Member{Name: "shop-1", Address: "10.0.0.7:8080", Role: "api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Leave(ctx)
	var second *cluster.Presence
	for view, err := range members.Members(ctx) {
		if errors.Is(err, cluster.ErrStale) {
			continue // what is known may be out of date
		}
		fmt.Println("members:")
		for _, m := range view.Members {
			fmt.Println("-", m.Name, "at", m.Address)
		}
		switch {
		case second == nil:
			second, _ = members.Join(ctx, cluster.Member{Name: "shop-2", Address: "10.0.0.8:8080", Role: "api"})
		case len(view.Members) == 2:
			second.Leave(ctx)
		default:
			return
		}
	}
	// Output:
	// members:
	// - shop-1 at 10.0.0.7:8080
	// members:
	// - shop-1 at 10.0.0.7:8080
	// - shop-2 at 10.0.0.8:8080
	// members:
	// - shop-1 at 10.0.0.7:8080
}

// A setting changes while the instance runs. A write that comes too late is refused.
func ExampleSetting_Watch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := &memcluster.Cluster{} // or zkcluster.New, or cluster.Fixed
	settings, err := cluster.NewSettings(cluster.SettingsConfig{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	permits, err := cluster.Define(settings, cluster.Key[int]{
		Name: "permits", Default: 64, Parse: strconv.Atoi,
		Validate: func(n int) error {
			if n < 1 {
				return errors.New("less than 1")
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- settings.Run(ctx) }()
	for value, version := range permits.Watch(ctx) {
		fmt.Println(value, "permits, version", version)
		if version == 0 {
			permits.Set(ctx, 8, version)
			continue
		}
		_, err := permits.Set(ctx, 16, 0)
		fmt.Println(err)
		_, err = permits.Set(ctx, 0, version)
		fmt.Println(errors.Is(err, cluster.ErrInvalid))
		break
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// 64 permits, version 0
	// 8 permits, version 1
	// cluster: set permits: cluster: permits has version 1, and not 0: cluster: written by another
	// true
	// <nil>
}

// Without a store the configuration is that of the flags.
func ExampleFixed() {
	settings, err := cluster.NewSettings(cluster.SettingsConfig{Store: cluster.Fixed{"pace": "250ms"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pace, err := cluster.Define(settings, cluster.Key[time.Duration]{Name: "pace", Default: time.Second, Parse: time.ParseDuration})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(settings.Load(context.Background()))
	value, version := pace.Get()
	fmt.Println(value, version)
	_, err = pace.Set(context.Background(), time.Minute, version)
	fmt.Println(err)
	// Output:
	// <nil>
	// 250ms 1
	// cluster: set pace: cluster: configuration is read-only
}
