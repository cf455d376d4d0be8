-- Gives a grant a new TTL. Never inserts: what is gone stays gone.
-- KEYS as in queue.lua
-- ARGV[1] OWNER:FENCE  ARGV[6] TTL in ms
-- Returns 1, or 0 if nobody has the lock, or -1 if another grant has it, or -2 if the owner was force-released.
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
local forced = string.match(redis.call('GET', KEYS[2]) or '', '^%d+:%d+:(.+)$')
if forced and forced == string.match(ARGV[1], '^(.*):%d+$') then return -2 end
return held and -1 or 0
