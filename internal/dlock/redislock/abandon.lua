-- Frees the lock if this owner has it, with whatever fence it got.
-- KEYS[1] lock
-- ARGV[1] owner
-- Returns 1 if the owner had it, else 0.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^(.*):%d+$') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
