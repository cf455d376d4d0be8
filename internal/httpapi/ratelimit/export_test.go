package ratelimit

// Buckets returns how many local buckets there are.
func (r *Limiter) Buckets() int {
	r.local.mu.Lock()
	defer r.local.mu.Unlock()
	return len(r.local.younger) + len(r.local.elder)
}
