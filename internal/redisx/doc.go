// Package redisx is what the primitives on Redis have in common: calls of Lua scripts in which
// concurrent callers share round trips, and notifications that scripts send to waiters.
package redisx
