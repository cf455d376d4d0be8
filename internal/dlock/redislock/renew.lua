-- Gives the grant a new TTL. Never inserts: what is gone stays gone.
-- KEYS[1] lock
-- ARGV[1] OWNER:FENCE  ARGV[2] TTL in ms
-- Returns 1, or 0 if nobody has the lock, or -1 if another grant has it.
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return held and -1 or 0
