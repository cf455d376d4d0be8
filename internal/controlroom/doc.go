// Package controlroom runs instances of the service, lets a person hold sales at them and break what he likes, and serves
// the page that shows it.
//
// Each instance is a process of its own, and reaches Redis, and a database that is a server, through a proxy of its own, so
// that a fault can be of one instance or of all. The page is that of [page]; beside it, a room passes requests of the API on to
// an instance that runs, and adds what only the owner of the processes can do.
//
// Whoever can make the room do something can stop what runs in it. So it listens on loopback only, answers for its own
// address only, refuses what pages of other origins send, and wants a token that is in the address it prints: in the
// fragment, which browsers send to nobody.
package controlroom
