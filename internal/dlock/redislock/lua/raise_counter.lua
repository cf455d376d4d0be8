-- Raises the last token; never lowers it.
-- KEYS[1] fence
-- ARGV[1] token  ARGV[2] TTL of the fence in ms
-- Returns 1 if it was raised, else 0.
local last, rest = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)(.*)$')
if last and tonumber(last) >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. (rest or ''), 'PX', ARGV[2])
return 1
