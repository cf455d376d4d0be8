// Package lab has experiments: each answers one question about locks, stock or timers with a run on real processes and servers.
//
// A lab shows an effect, such as an oversell, and then the same situation with the cure. What must happen in one order is brought
// about by a process that is stopped at a named point (see [Worker]), by SIGSTOP, or by a proxy that breaks a connection. Luck is
// needed only where the effect is a race among many, and there are enough of them.
//
// A lab ends with a verdict: [Shown] if the effect appeared and the cure worked, [NotShown] if one of them did not, and
// [Inconclusive] if the machine kept the lab from finding out, for example because a server is not installed.
package lab
