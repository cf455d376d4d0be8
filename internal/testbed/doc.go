// Package testbed runs the real servers that the service depends on, so that
// tests and experiments meet the behaviour of Redis and MariaDB rather than an
// idea of it, and it breaks them in the ways that matter.
//
// # Servers
//
// StartRedis and StartMariaDB run a server as a child process on a free
// loopback port with its data in a temporary folder. They return once the server
// answers in its own protocol and has proved to be that child: an open port is
// not yet a server, and the server behind a port may be somebody else's.
// A server that is not installed is reported as ErrNotInstalled.
//
// StartEtcd and StartEtcdCluster do the same for etcd, of one member and of three,
// StartZooKeeper and StartZooKeeperEnsemble for ZooKeeper.
//
// StartSentinel and StartCluster run groups of Redis servers that replace a dead
// master by its replica, and return once they could do so.
//
// # Faults
//
// A Process can be paused (Pause, Resume), crashed (Kill), stopped in good order
// (Stop) and started again on the same port and the same folder (Restart). A
// Proxy stands between a client and a server and takes the network away: it
// swallows everything, refuses connections, or loses exactly one reply.
//
// # Lifetime
//
// No server outlives the program that started it, even when that program is
// killed by a signal that cannot be caught. Every server has a guard, a shell
// that reads a pipe held open by this program: when the pipe ends, the guard kills the
// server and removes its temporary folder. A server begins to run only after
// its guard knows its process id, so no moment is left uncovered. The guard is
// independent of operating-system threads and works where there is a POSIX shell;
// elsewhere every start fails with errors.ErrUnsupported.
//
// A running server costs no goroutine here, so leak detectors stay quiet.
//
// The package imports no testing; the kit for tests is testbedtest.
package testbed
