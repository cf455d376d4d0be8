-- Raises the last token; never lowers it.
-- KEYS and ARGV[2] as in queue.lua
-- ARGV[1] token
-- Returns 1 if it was raised, else 0.
local last, rest = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+)(.*)$')
if last and tonumber(last) >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1] .. (rest or ''), 'PX', ARGV[2])
return 1
