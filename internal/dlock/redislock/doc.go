// Package redislock is dlock on one Redis.
package redislock
