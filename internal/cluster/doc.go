// Package cluster gives the instances of a service a member list, one leader and one
// configuration.
//
// # Use
//
// A backend provides a [Membership], an [Election] and, if it has one, a [ConfigStore]. zkcluster
// has all three, and sqlcluster the first two. Without a store [Fixed] is the configuration of the flags.
//
//	presence, err := members.Join(ctx, cluster.Member{Name: "shop-1", Address: "10.0.0.7:8080"})
//	...
//	defer presence.Leave(ctx)
//	for view, err := range members.Members(ctx) { // now, and after each change
//		...
//	}
//
//	election, err := members.Election("leader", "shop-1") // of sqlcluster
//	...
//	cluster.Lead{Election: election}.Run(ctx, func(ctx context.Context, term *cluster.Term) error {
//		return sweep(ctx, term.Fence()) // until the term ends
//	})
//
//	settings, err := cluster.NewSettings(cluster.SettingsConfig{Store: store})
//	permits, err := cluster.Define(settings, cluster.Key[int]{Name: "permits", Default: 64, Parse: strconv.Atoi})
//	err = settings.Load(ctx)
//	go settings.Run(ctx)
//	for n := range permits.Watch(ctx) { // now, and after each change
//		limiter.Resize(n)
//	}
//
// # Sequences
//
// Values that change are sequences to range over: [Membership].Members, [Election].Observe and
// [Setting.Watch]. The first step is the present value, and each further step a later one. A slow
// consumer misses steps in between, and never the last one. The sequence ends with the loop, or with
// its context.
//
// When the store does not answer, members and leaders come with [ErrStale]: the value is the last one that
// was read, and may be wrong. A router may continue with it. A caller that decides must wait.
// Settings have [Settings.Stale].
//
// # Election
//
// The leader has one entry in the store, with its name, the number of its term, and the time at which the term expires.
// sqlcluster has a row that candidates poll. The leader's transactions begin with it, so a former leader is refused
// where it works. zkcluster makes an election of a zklock: candidates wait in a queue in which each watches its
// predecessor, and the leader announces its name in another node. A leader that is cut off stops before its term can
// end.
//
// # Configuration
//
// An instance reads its own copy, a pointer in memory. The store has texts with versions, and the [Key] parses them. An
// instance refuses a text that is not valid, and keeps the previous value. Such a text may come from another tool or
// another version of the program. A write names the version that it replaces. So of two racing writes one fails and
// changes nothing. [Settings.All] returns the version that the store has, even if its value was refused: the next write
// replaces that version.
//
// # Guarantees
//
// Each guarantee is the name of a case of package clustertest, which every backend passes as far as its store
// allows, or of a test. The comments of [Membership], [Election] and [Settings] list them.
//
// # Not guaranteed
//
//   - A list that is up to date. A listed member may have died, and a member that is cut off is alive.
//   - The same list, leader or values at two instances at one moment.
//   - The same moment for two settings that are written one after the other.
//   - A leader that stops when its term ends. A paused process continues later, so that the
//     resources that it changes must check the fence.
//   - A leader at any time. During an outage of the store there is none. Work that must continue needs no election.
//   - Tokens that grow over a loss of all data of ZooKeeper, which counts by itself. They begin again, and resources
//     refuse them until the token offset is raised. In SQL they grow.
//
// # Time
//
// S is how long the store keeps the entry of an instance that is silent: the timeout of the
// session, or the TTL. Measured at S = 2 s on a busy machine of two cores.
//
//	                                  zkcluster, zklock              sqlcluster
//	a change is seen                  at once, after another 0.1 s   0.5 s, Poll
//	  measured                        2 to 105 ms                    0.4 to 0.5 s
//	a member that was killed is gone  S + a tick + 0.1 s             S + 0.5 s
//	  measured                        1.9 to 2.2 s                   2.1 to 2.2 s
//	the next leader after a kill      S + a tick                     S + 0.5 s, Poll
//	  measured                        1.9 to 2.1 s                   1.8 to 2.3 s
//	the next leader after a Resign    at once                        0.5 s, Poll
//	  measured                                                       0.25 to 0.46 s
//	a leader that is cut off stops    0.54 S after it was confirmed  0.9 S after a renewal
//	  measured, from the cut          0.8 to 1.1 s                   1.8 s
//	stale is reported                 2/3 S after the last answer    Poll and Timeout, 2/3 S at most
//	  measured                        1.2 to 1.3 s                   1.1 to 1.2 s
//	a name is refused                 1.5 S                          1.5 S
//	a setting is in force             at once, after another 0.1 s   fixed
//	  measured, five instances        10 to 110 ms
//
// # Failures
//
//	an instance is killed          its entry, its announcement and its term end with S
//	an instance is paused          the same; when it resumes it joins again, and its leadership ends
//	the store is away              lists and settings stay, and report that they are stale; terms end; no leader is elected;
//	                               Join and Campaign wait; all resumes by itself
//	the store has lost its data    members join again; see the backends for what is seen meanwhile
//	nodes are deleted or added     members and announcements come back, foreign entries are ignored
//	a bad value is written         it is refused, OnError is called, the previous value stays
//
// # Goroutines
//
// A [Presence] has one, from Join to the end of Leave. A [Term] has one, which renews it or keeps its announcement, and
// Resign waits for it; after a loss it ends by itself in bounded time. Sequences have none: the range loop reads and
// waits. [Settings.Run] and [Lead.Run] block.
package cluster
