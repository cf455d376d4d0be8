// Package lab has experiments: each answers one question about locks, stock or timers with a run on real processes and servers.
//
// A lab shows an effect, such as an oversell, and then the same situation with the cure. A lab forces the order of
// events. It stops a process at a named point (see [Worker]) or by SIGSTOP, or a proxy breaks a connection. Only a
// race among many processes needs luck, and then there are enough of them.
//
// A lab ends with a verdict: [Shown] if the effect appeared and the cure worked, [NotShown] if one of them did not.
// It is [Inconclusive] if the machine prevented an answer, for example because a server is not installed.
//
// The pictures are SVG by hand: libraries draw curves over axes, and these are rows of leases with labels.
package lab
