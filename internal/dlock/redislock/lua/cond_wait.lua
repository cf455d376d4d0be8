-- Ends this grant, as release.lua does, and begins to wait for a signal.
-- ARGV[1] OWNER:FENCE  ARGV[6] waiter  ARGV[7] its stamp
-- Returns 1, or what release.lua does if this grant does not hold the lock.
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then return stale(held) end
local time = now()
append(asleep, ARGV[6], time)
remember(ARGV[6], ARGV[7], time)
pass()
return 1
