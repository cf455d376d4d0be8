package redissem

// Every key of the semaphores is built here. The braces are a hash tag: all keys
// of one semaphore live in one slot of a Redis Cluster, as a script requires.

const defaultPrefix = "shop:sem:"

// keys are those of common.lua's scripts, in their order.
func (s *Semaphore) keys(key string) []string {
	base := s.prefix + "{" + key + "}"
	return []string{base, base + ":queue", base + ":owners", base + ":state", base + ":limit"}
}
