// Package controlroom runs a few instances of the service with their stores, and serves a page that starts sales and
// breaks instances. The page also makes a holder of a lease late, and runs the labs of package lab.
//
// Each instance is a process of its own. It reaches Redis, and a database that is a server, through its own proxy,
// so a fault can affect one instance or all of them. The room measures the stores through proxies of its own, so it sees
// the same faults. Package page has the page. The room forwards API requests of
// the page to a running instance, and adds the operations that only the owner of the processes can perform.
//
// A caller that controls the room can stop every process in it. So the room listens on loopback only, serves its
// own host name only, refuses requests from pages of other origins, and requires a token. The token is in the
// fragment of the printed address, which browsers do not send to servers.
package controlroom
