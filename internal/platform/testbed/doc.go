// Package testbed starts and breaks the real servers that the service depends on: Redis, MariaDB, MySQL, PostgreSQL,
// ZooKeeper and etcd. Tests and experiments use them instead of fakes. It is by hand, because libraries start containers: they need a
// Docker engine, which a reader's machine may lack.
//
// # Servers
//
// StartRedis, StartMariaDB and StartPostgres run a server as a child process on a free loopback port, with its data in a temporary
// folder. They return when the server answers in its own protocol and has proved to be that child. An open port
// alone proves nothing: another process may listen behind it. The end of the context gives up a start, and does not end
// a server that is running. If a server is not installed, the error is ErrNotInstalled.
//
// StartEtcd and StartEtcdCluster start one or three members of etcd, StartZooKeeper and StartZooKeeperEnsemble
// those of ZooKeeper. StartGalera starts nodes of MariaDB, each of which accepts writes. StartGroup starts three MySQL
// servers, each on a machine of a Network. They elect the one that accepts writes. StartSentinel and StartCluster start
// groups of Redis servers that replace a dead master with its replica. They return when the group can do so.
//
// # Faults
//
// A Process can be paused (Pause, Resume), crashed (Kill), stopped in order (Stop), and started again on the same
// port and folder (Restart). A Proxy between a client and a server takes the network away: it swallows everything,
// refuses connections, or drops exactly one reply. A Network cuts
// servers off from each other. Clients still reach them.
//
// # Lifetime
//
// No server outlives the program that started it, even if a signal kills the program that it cannot catch. Every
// server has a guard: a shell that reads a pipe which this program holds open. When the pipe ends, the guard kills
// the server and removes its temporary folder. A server starts only after its guard has its process id, so no
// moment is unguarded. The guard does not depend on operating-system threads. It needs a POSIX shell; elsewhere
// every start fails with errors.ErrUnsupported. A Network has such a guard, too, which removes its machines.
//
// A running server needs no goroutine of this program, so leak detectors report nothing. The package does not
// import testing; package testbedtest is its front for tests.
package testbed
