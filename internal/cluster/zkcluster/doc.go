// Package zkcluster is package cluster on ZooKeeper, over a session of package zookeeper,
// which a process has one of. Elections need a locker besides: zklock, on the same session.
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
// MEMBER is name;address;role;version;started and LEADER is name;token;owner;since, with
// escapes, so that ls shows what there is:
//
//	ls /shop/cluster/members
//	[3QX...-K7A...;shop-1;10.0.0.7:8080;api;v1.4.0;20260102T030405.678Z;0000000012]
//
// All that is known of a member is in the name of its node. So a list costs one request,
// of some hundred bytes per member, whatever has changed: with the data in the nodes, a
// hundred instances that join would read 100 x 100 of them. Other programs may add fields
// at the end. ID is random and new for each node: by it a creation that was not answered is
// found and deleted. INC is new for each call of Join. NNN counts up, and wraps around
// after 2^31 (FirstOfANameCounts).
//
// Whoever writes by other means may do so: a text that is no valid value is refused by
// all, nodes with other names are ignored, and reported once (StraysAreReportedOnce). A node
// that is deleted and made again has versions from 1 on: who deletes settings by hand
// must not rely on versions that were read before.
//
// # Names
//
// Of several nodes with the same name the first one counts, and only that one is listed.
// An instance looks who is there, and creates its node if nobody is, or if who is there is
// itself: the same INC, or the same address at its first attempt. Then it looks again, at
// the listing that was sent right behind the creation. If another one came first it
// deletes its node and waits for the end of that one; otherwise it deletes those that it
// replaces. The order, to create first and to delete then, leaves no gap in the list.
//
// # Operations
//
// In rounds, c being a commit by a majority.
//
//	Join             4 + c   sync, list; create and list; watch the own node
//	Leave            1 + c   delete
//	a change         1       list, by each that watches
//	an announcement         1 + c   create
//	Set              1 + c
//	a setting        2       list, and get each that is there
//	nothing happens  1 + c   per third of S and sequence: a commit that changes nothing, and list again
//
// # What a list is worth
//
// A server that is cut off from its leader goes on answering for a while. So lists that
// nothing has asked for, every third of S, begin with such a commit, if the session has not been
// confirmed otherwise. When there is no answer for another third of S the list is stale.
//
// # Failures
//
// A session that ends takes the nodes of its instance with it. The instance learns of it when
// a server is reached again, or gives the session up after twice its timeout, and joins
// again. What it may have left behind it replaces (OwnOldNodeIsReplaced). Containers
// that the servers delete because they are empty are made again (ContainersComeBack). A
// announcement that is deleted during the term is posted again (DeletedAnnouncementComesBack).
//
// Servers that are killed keep all, and sessions last for another S once there is a
// leader (Server/IsRestarted, Ensemble/LeaderIsStopped). Without a majority all is stale,
// and terms end (Ensemble/NoQuorumNoLeader): the leader of the servers answers until it
// finds itself alone, five ticks later, and then the trust of 0.54 S runs out.
//
// Servers that lose their data lose the configuration with it, and settings fall back to
// their defaults. Members join again (Server/LosesItsData); until then lists lack them
// without being stale, as nobody can tell.
package zkcluster
