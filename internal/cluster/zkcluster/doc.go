// Package zkcluster implements package cluster on ZooKeeper: the member list, leader announcements and the
// configuration. It uses the session of package zookeeper, of which a process has one. [Election] also needs a
// locker: zklock, on the same session. The shop elects in SQL, where its leader works, so this election is an example.
//
// # Data
//
//	/shop/cluster/members                  container
//	/shop/cluster/members/ID-INC;MEMBER;NNN      ephemeral, sequential: a member
//	/shop/cluster/elections/KEY            container
//	/shop/cluster/elections/KEY/ID-LEADER;NNN    ephemeral, sequential: an announcement
//	/shop/cluster/config                   container
//	/shop/cluster/config/NAME              a setting: its data is the text, its version less one the version
//
// MEMBER is name;address;role;version;started and LEADER is name;token;owner;since, with escapes, so that ls shows
// them:
//
//	ls /shop/cluster/members
//	[3QX...-K7A...;shop-1;10.0.0.7:8080;api;v1.4.0;20260102T030405.678Z;0000000012]
//
// The name of a member's node has everything about the member. So a list costs one request, of some hundred bytes
// per member. With the data in the nodes, a hundred instances that join would read 100 x 100 of them. Other
// programs may add fields at the end. ID is random and new for each node: it finds a node whose creation was not
// answered, so that it can be deleted. INC is new for each call of Join. NNN counts up, and wraps around after 2^31
// (FirstOfANameCounts).
//
// Other programs may write, too. A text that is not a valid value is refused by all instances. Nodes with other
// names are ignored, and reported once (StraysAreReportedOnce). If a node is deleted and created again, its
// versions start at 1. So an operator who deletes settings must not use versions that were read before.
//
// # Names
//
// Of several nodes with the same name the first one counts, and only that node is listed. An instance reads the list.
// It creates its node if the name is free or the present node is its own. Its own node has the same INC, or at its
// first attempt the same address. Then it reads the list that was requested right after the creation. If another node
// was first, the instance deletes its own and waits for the end of that node. Otherwise it deletes the nodes that it
// replaces. It creates before it deletes, so the list has no gap.
//
// # Operations
//
// In round trips; c is a commit by a majority.
//
//	Join             4 + c   sync, list; create and list; watch the own node
//	Leave            1 + c   delete
//	a change         1       list, by each that watches
//	an announcement  1 + c   create
//	Set              1 + c
//	a setting        2       list, and get each that is there
//	nothing happens  1 + c   per third of S and sequence: a commit that changes nothing, and list again
//
// # Stale lists
//
// A server that is cut off from its leader answers for a while. So each list that no watch caused, one every third
// of S, begins with such a commit, unless the session was confirmed otherwise. If there is no answer for another
// third of S, the list is stale.
//
// # Failures
//
// A session that ends deletes the nodes of its instance. The instance is notified when it reaches a server again,
// or gives the session up after twice its timeout, and joins again. It replaces nodes that it left behind
// (OwnOldNodeIsReplaced). If the servers delete an empty container, it is created again (ContainersComeBack). If an
// announcement is deleted during the term, it is posted again (DeletedAnnouncementComesBack).
//
// Servers that are killed keep all data, and sessions last for another S once there is a leader
// (Server/IsRestarted, Ensemble/LeaderIsStopped). Without a majority everything is stale, and terms end
// (Ensemble/NoQuorumNoLeader). The leader of the servers answers for five more ticks, until it detects that it is
// alone. Then the session validity of 0.54 S passes.
//
// Servers that lose their data lose the configuration, and settings fall back to their defaults. Members join again
// (Server/LosesItsData). Until then lists lack them without being stale, because no instance can detect that.
package zkcluster
