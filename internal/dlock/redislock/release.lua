-- Frees the lock of this grant, and no other.
-- KEYS[1] lock
-- ARGV[1] OWNER:FENCE
-- Returns 1, or 0 if nobody has the lock, or -1 if another grant has it.
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return held and -1 or 0
