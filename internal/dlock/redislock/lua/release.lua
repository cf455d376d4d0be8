-- Ends this grant, and no other; the first waiter that lives gets the lock.
-- KEYS and ARGV[2..5] as in queue.lua
-- ARGV[1] OWNER:FENCE
-- Returns 1, or 0 if nobody has the lock, or -1 if another grant has it, or -2 if
-- the owner was force-released.
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then
  pass()
  return 1
end
local forced = string.match(redis.call('GET', KEYS[2]) or '', '^%d+:%d+:(.+)$')
if forced and forced == string.match(ARGV[1], '^(.*):%d+$') then return -2 end
return held and -1 or 0
