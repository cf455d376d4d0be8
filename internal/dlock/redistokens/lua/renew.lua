-- Renews a holder with all that it has, and never makes one.
-- KEYS[7] held by it
-- ARGV[2] holder
-- Returns what it has: nothing if it has expired.
if expires(ARGV[2]) <= now then return {} end
redis.call('ZADD', holders, now + ttl, ARGV[2])
touch()
return redis.call('LRANGE', KEYS[7], 0, -1)
