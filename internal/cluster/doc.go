// Package cluster makes the instances of a service know each other, follow one leader
// and have one configuration.
//
// # Use
//
// A backend gives a [Membership], a [Board] and, if it has one, a [ConfigStore]:
// zkcluster all three, rediscluster the first two, memcluster all of them within one
// process. Without a store [Fixed] is the configuration of the flags.
//
//	presence, err := members.Join(ctx, cluster.Member{Name: "shop-1", Address: "10.0.0.7:8080"})
//	...
//	defer presence.Leave(ctx)
//	for view, err := range members.Members(ctx) { // now, and after each change
//		...
//	}
//
//	election, err := cluster.NewElection(cluster.ElectionConfig{Locker: locker, Board: board, Name: "shop-1"})
//	...
//	err = election.Lead(ctx, func(ctx context.Context, term *cluster.Term) error {
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
// What changes is a sequence to range over: [Membership].Members, [Election.Observe] and
// [Setting.Watch]. Its first step is what is so now, and each further one is what has
// become of it: a consumer that is slow misses steps in between, and never the last one.
// There is nothing to close: the sequence ends with the loop, or with its context.
//
// The steps of the first two come with an error when the store does not answer: the
// value is the last one that was known, and the error is [ErrStale]. So a list that may
// be wrong says so, and what to do with it is for the caller: one who routes requests
// goes on with it, one who decides waits. Settings have [Settings.Stale].
//
// # Names
//
// A member's name is its own as long as it lives. Whether one that has the name lives
// cannot be told before the store would have forgotten it, so that Join waits for that
// time, and then fails with [ErrNameTaken]. An instance that comes again after a crash
// does not wait: it has the same name and the same address, on which nobody else can
// listen, so that the entry is its own and is replaced at once. If the one before lives
// after all, it ends with [ErrReplaced] and does not take the name back; so two
// instances that are given the same name and address by mistake do not take turns.
//
// # Election
//
// An election is a lock, and a term is its lease. There is no recipe here: the order of
// the candidates, the trust in a term, its fence, and what becomes of requests without an
// answer are those of the [dlock.Locker], whatever its backend, and proved there. With
// zklock candidates wait in a queue in which each watches the one before, the token
// is the transaction that made the candidate's node, and a leader that is cut off stops
// before its session can end. What an election adds is the name: the leader posts it on
// a [Board] with its fence, and observers read it there. A notice is news. It comes after
// the term has begun and can outlast it, and of two the one with the later term counts.
//
// # Configuration
//
// An instance reads its own copy, a pointer in memory. The store has texts with versions;
// what they mean is in the [Key]. A text that is not valid is refused by whoever reads
// it, and what was in force before stays, because it may have been written by other
// means or by another version of the program. A write names the version that it
// replaces, so that of two that race one fails and has changed nothing; there is no
// write without a version. [Settings.All] tells the version that the store has even if
// its value was refused: that is the one to replace.
//
// # Guarantees
//
// Each is the name of a case of package clustertest, which every backend passes as far
// as its store allows, or of a test.
//
// Membership: who has joined is listed everywhere, and who has left is not (JoinIsSeen,
// LeaveIsSeen, FirstViewIsOfNow). Changes are merged, for who is slow (ChangesAreMerged)
// and for all in a storm: a sequence costs one reading per gap, and a reading is one
// request, whatever the number of members (StormIsMerged, StormCostsOneReadingPerGap). A
// live member keeps its name (NameIsTaken, OneOfTwoGetsTheName), and frees it
// (NameIsFreeAfterLeave). A restart joins at once, and the one before is told
// (RestartJoinsAtOnce, ReplacedWhileAway, NameIsTakenWhileAway). A member whose entry is
// lost, by the end of its session or by somebody's hand, joins again by itself
// (LostEntryComesBack, CutOffMemberComesBack). A request without an answer leaves no
// second entry (LostReplyLeavesOneEntry). Who is cut off says so and keeps the list
// (StaleIsSaid). Entries of others are ignored, counted, and told once (StraysAreIgnored).
//
// Election: one leads (OneLeads), in the order of the campaigns where the locker has one
// (ElectedInOrder). The fence of a term is greater than those before (ResignHandsOn). A
// leader that is cut off knows before the next one is elected, and no work of two
// terms mixes in a register that checks the fence (CutOffLeaderStopsFirst); that of one
// whose process was stopped is refused (StoppedLeaderIsFenced). Work ends with the term
// (LossEndsTheWork, LeadEndsWithItsContext). A candidate that gives up leaves nothing
// (CancelledCampaignLeavesNothing). A leader that is killed is replaced
// (KilledLeaderIsReplaced). A campaign outlasts failures of the store (CampaignGoesOn).
// Observers are told of every leader that stays (ObserveTells), and not of one whose term
// is over when there is another (LateNoticeIsIgnored); they say when they know nothing
// (ObserverIsToldThatItIsStale). The notice goes before Resign returns
// (NoticeEndsWithTheTerm, NoticeGoesWithItsContext).
//
// Configuration: what is set is in force everywhere (SetIsSeenByAll). Of writes that race
// one wins (OneOfRacingWritesWins), and a conflict changes nothing
// (ConflictChangesNothing). What is not valid is not written (InvalidIsNotWritten), or
// refused and told of once (BadValueIsRefused). Without the store the last values stay
// (StoreAwayKeepsTheLast). What is deleted has its default (UnsetIsTheDefault). A write
// without an answer says so (LostReplyIsUncertain).
//
// # Not promised
//
// That a list is the truth: a member that is listed may have died just now, and one that
// is cut off is alive. That two instances have the same list, leader or values at one
// instant. That two settings that are written one after the other come into force
// together. That a leader's process stands still when its term is over: the fence is for
// that, so what a leader changes has to check it. That there is a leader: during an
// outage of the store there is none, and work that has to go on needs no election. That
// fences grow over a loss of all data of a store which counts by itself, as ZooKeeper
// does: they begin again, and resources refuse them until they are told, or find out. A
// leader whose term goes on after it has read the number that a resource has accepted is later than
// that, however low its own.
//
// # Time
//
// S is how long the store keeps an instance that it does not hear of: the timeout of the
// session, or the TTL. Measured at S = 2 s on a busy machine of two cores.
//
//	                                  zkcluster, zklock              rediscluster, redislock
//	a change is seen                  at once, after another 0.1 s   0.5 s, Poll
//	  measured                        2 to 105 ms                    2 to 590 ms
//	a member that was killed is gone  S + a tick + 0.1 s             S + 0.5 s
//	  measured                        1.9 to 2.2 s                   2.2 to 2.3 s
//	the next leader after a kill      S + a tick                     S
//	  measured                        1.9 to 2.1 s                   1.8 to 1.9 s
//	a leader that is cut off stops    0.54 S after it was confirmed  0.9 S after a renewal
//	  measured, from the cut          0.8 to 1.1 s                   1.7 to 1.8 s
//	stale is said                     2/3 S after the last answer    Poll and Timeout, 2/3 S at most
//	  measured                        1.2 to 1.3 s                   1.1 to 1.2 s
//	a name is refused                 1.5 S                          1.5 S
//	a setting is in force             at once, after another 0.1 s   fixed
//	  measured, five instances        10 to 110 ms
//
// # Failures
//
//	an instance is killed          its entry, its notice and its term end with S
//	an instance stands still       the same; it joins again, and its leader finds out, when it goes on
//	the store is away              lists and settings stay and say that they are stale; terms end; nobody is elected;
//	                               Join and Campaign wait; all goes on by itself
//	the store has lost its data    members join again; see the backends for what is seen meanwhile
//	somebody deletes or adds nodes members and notices come back, strangers are ignored
//	a bad value is written         it is refused, OnError is told, the one before stays
//
// # Goroutines
//
// A [Presence] has one, from Join to the end of Leave. A [Term] has one, which keeps the
// notice, and Resign waits for it; after a loss it ends by itself in bounded time. Sequences have
// none: who ranges over one reads and waits. [Settings.Run] and [Election.Lead] block.
package cluster
