-- Moves waiters to the queue of the lock, which this grant must hold.
-- ARGV[1] OWNER:FENCE  ARGV[6] how many at most
-- Returns {1, how many were moved, 1 if more wait}, or {what release.lua returns, 0, 0}
-- if this grant does not hold the lock.
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then return {stale(held), 0, 0} end
local time, moved = now(), 0
for _ = 1, math.min(tonumber(ARGV[6]), at_once) do
  local id = rouse(time)
  if not id then break end
  append(KEYS[3], id, time)
  moved = moved + 1
end
keep(KEYS[3], redis.call('PTTL', KEYS[4]))
return {1, moved, redis.call('EXISTS', asleep)}
