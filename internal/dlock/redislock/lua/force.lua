-- Takes the lock from its holder, or from a value that no client has written. The fence moves on and remembers whom it was
-- taken from, for its next renewal; its process is told.
-- KEYS and ARGV[2..5] as in queue.lua
-- Returns 1, or 0 if nobody has the lock.
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local owner = string.match(held, '^(.*):%d+$')
next_token(KEYS[2], now(), owner)
if owner then redis.call('PUBLISH', ARGV[5] .. string.match(owner, '^[^-]*'), owner .. ' forced') end
pass()
return 1
